//! Functions of our own: where SQL alone would be slow, wrong or unreadable.
//!
//! | function | what it is for |
//! |---|---|
//! | `collect_jobs`, `collect_allocations`, `collect_runtime`, `collect_profiles`, `collect_capacity` | aggregates: the rows of a job or block, judged, as one mergeable value ([`collect`]) |
//! | `merge_collected` | an aggregate: such values of several tables and partitions as one ([`collect`]) |
//! | `book_job`, `book_capacity` | the sweep over a job's or a block's time line ([`book`]) |
//! | `sum` | as ever, but a sum of 64-bit integers that does not fit is an error ([`checked`]) |
//! | `checked_add`, `checked_sub` | integers; an error where `+` and `-` would wrap ([`checked`]) |
//! | `ratio` | the quotient of two sums as a float; null on a zero denominator ([`ratio`]) |
//! | `grouped_by`, `owns_capacity` | by which axes a row of grouping sets is grouped; whether capacity belongs to such segments ([`segments`]) |
//! | `hostlist` | `a[01-03,7]` as a list of host names ([`hostlist`]) |

pub mod book;
pub mod checked;
pub mod collect;
pub mod hostlist;
pub mod ratio;
pub mod segments;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};
use datafusion::prelude::SessionContext;
use goodput_model::Table;

/// Makes all functions known to a session.
pub fn register(context: &SessionContext) {
    for table in Table::ALL {
        context.register_udaf(AggregateUDF::from(collect::Collect::new(table)));
    }
    context.register_udaf(AggregateUDF::from(collect::Collect::merging()));
    context.register_udaf(AggregateUDF::from(checked::CheckedSum::new()));
    context.register_udf(ScalarUDF::from(checked::Checked::add()));
    context.register_udf(ScalarUDF::from(checked::Checked::sub()));
    context.register_udf(ScalarUDF::from(book::BookJob::new()));
    context.register_udf(ScalarUDF::from(book::BookCapacity::new()));
    context.register_udf(ScalarUDF::from(ratio::Ratio::new()));
    context.register_udf(ScalarUDF::from(segments::GroupedBy::new()));
    context.register_udf(ScalarUDF::from(segments::OwnsCapacity::new()));
    context.register_udf(ScalarUDF::from(hostlist::Hostlist::new()));
}
