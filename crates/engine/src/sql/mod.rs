//! One SQL file = one table = one statement.
//!
//! A file begins with a header that says its grain, what it reads and why it exists. Values enter as `$parameters`, lists
//! of columns as macros ([`expand`]); both are put into the parsed statement, and SQL text is never glued.

mod expand;

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::DataFusionError;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::resolve::resolve_table_references;
use datafusion::sql::sqlparser::dialect::GenericDialect;
use goodput_model::Day;

pub use expand::ColumnLists;

use crate::EngineError;

/// A SQL file, parsed.
#[derive(Debug, Clone)]
pub struct SqlFile {
    /// The file, for messages.
    pub place: String,
    /// What a row of the table is.
    pub grain: String,
    /// The tables that it reads, as the header says and the statement does.
    pub reads: BTreeSet<String>,
    statement: Statement,
}

/// A value that enters a statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// A text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A day.
    Date(Day),
    /// A truth value.
    Bool(bool),
}

/// The values that enter a statement, by name (without the `$`).
pub type Parameters = BTreeMap<String, Parameter>;

impl SqlFile {
    /// Parses a file. `place` names it in messages.
    pub fn parse(place: &str, text: &str) -> Result<SqlFile, EngineError> {
        let wrong = |problem: String, hint: &str| EngineError::Sql {
            place: place.to_owned(),
            problem,
            hint: Some(hint.to_owned()),
        };
        let header = header(text);
        let entry = |name: &str| header.get(name).filter(|value| !value.is_empty()).cloned();
        let missing = |name: &str| {
            wrong(
                format!("the header has no `-- {name}:` line"),
                "begin the file with `-- grain:`, `-- reads:` and `-- why:`",
            )
        };
        let grain = entry("grain").ok_or_else(|| missing("grain"))?;
        let said = entry("reads").ok_or_else(|| missing("reads"))?;
        entry("why").ok_or_else(|| missing("why"))?;

        let statement = parse_statement(place, text)?;
        let (relations, _) = resolve_table_references(&statement, true).map_err(|error| sql_error(place, &error))?;
        let reads: BTreeSet<String> = relations.iter().map(ToString::to_string).collect();
        let said: BTreeSet<String> =
            said.split(',').map(str::trim).filter(|name| *name != "nothing").map(str::to_owned).collect();
        if said != reads {
            let list = |names: &BTreeSet<String>| names.iter().cloned().collect::<Vec<_>>().join(", ");
            return Err(wrong(
                format!("the header says that it reads {}, the statement reads {}", list(&said), list(&reads)),
                "correct the `-- reads:` line",
            ));
        }
        Ok(SqlFile { place: place.to_owned(), grain, reads, statement })
    }

    /// The names of the parameters in it (without the `$`).
    pub fn parameters(&self) -> BTreeSet<String> {
        expand::parameters(&self.statement)
    }

    /// The statement in a form that does not change with comments and line breaks.
    pub fn normalized(&self) -> String {
        self.statement.to_string()
    }

    /// The statement with its parameters and column lists put in.
    pub(crate) fn expanded(&self, parameters: &Parameters, lists: &ColumnLists) -> Result<Statement, EngineError> {
        expand::expand(self.statement.clone(), parameters, lists).map_err(|problem| EngineError::Sql {
            place: self.place.clone(),
            problem,
            hint: None,
        })
    }
}

/// Parses exactly one statement.
pub(crate) fn parse_statement(place: &str, text: &str) -> Result<Statement, EngineError> {
    let parsed = DFParserBuilder::new(text)
        .with_dialect(&GenericDialect {})
        .build()
        .and_then(|mut parser| parser.parse_statements());
    let mut statements = parsed.map_err(|error| sql_error(place, &error))?;
    match (statements.pop_front(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (None, _) => Err(EngineError::Sql {
            place: place.to_owned(),
            problem: "there is no statement".to_owned(),
            hint: Some("write one SELECT".to_owned()),
        }),
        (Some(_), more) => Err(EngineError::Sql {
            place: place.to_owned(),
            problem: format!("there are {} statements", more + 1),
            hint: Some("one at a time: run each on its own".to_owned()),
        }),
    }
}

/// What DataFusion says of a statement, with line and column where it knows them.
pub(crate) fn sql_error(place: &str, error: &DataFusionError) -> EngineError {
    let at = error.diagnostic().and_then(|diagnostic| diagnostic.span).map(|span| (span.start.line, span.start.column));
    let place = match at {
        Some((line, column)) if line > 0 => format!("{place}:{line}:{column}"),
        _ => place.to_owned(),
    };
    let hint = error.diagnostic().and_then(|diagnostic| diagnostic.helps.first().map(|help| help.message.clone()));
    EngineError::Sql { place, problem: error.strip_backtrace(), hint }
}

/// The `-- name: value` lines before the statement; lines of comment without a name go on with the value before.
fn header(text: &str) -> BTreeMap<String, String> {
    let mut entries: BTreeMap<String, String> = BTreeMap::new();
    let mut at: Option<String> = None;
    for line in text.lines() {
        let Some(comment) = line.trim().strip_prefix("--") else { break };
        let comment = comment.trim();
        match comment.split_once(':') {
            Some((name, value)) if ["grain", "reads", "why"].contains(&name.trim()) => {
                at = Some(name.trim().to_owned());
                entries.insert(name.trim().to_owned(), value.trim().to_owned());
            }
            _ => {
                if let Some(value) = at.as_ref().and_then(|name| entries.get_mut(name)) {
                    value.push(' ');
                    value.push_str(comment);
                }
            }
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match SqlFile::parse("x.sql", text) {
            Ok(_) => "none".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn the_header_is_held_true() {
        let header = "-- grain: one row a day\n-- reads: a,\n--   b.c\n-- why: to test\n";
        assert_eq!(problem(&format!("{header}SELECT * FROM a JOIN b.c ON true")), "none");
        assert!(problem(&format!("{header}SELECT * FROM a")).contains("says that it reads a, b.c"));
        assert!(problem("-- grain: x\n-- why: y\nSELECT 1").contains("no `-- reads:` line"));
        assert!(problem("SELECT 1").contains("no `-- grain:` line"));
        assert!(problem(&format!("{header}SELECT * FROM a JOIN b.c ON true; SELECT 1")).contains("2 statements"));
        assert!(problem(header).contains("no statement"));
        assert!(problem(&format!("{header}SELEC")).contains("x.sql"));
    }
}
