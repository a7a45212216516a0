//! `goodput sql`.

use std::io::{IsTerminal, Read};

use anyhow::{Context, bail};
use goodput_pipeline::Plan;
use goodput_pipeline::catalog::open_catalog;

use crate::GOOD;
use crate::args::{Args, Format, SqlArgs};
use crate::output::write_rows;

pub(crate) async fn execute(args: &Args, command: &SqlArgs) -> anyhow::Result<u8> {
    let query = match (&command.query, &command.file) {
        (Some(query), _) => query.clone(),
        (None, Some(file)) => {
            std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?
        }
        (None, None) if std::io::stdin().is_terminal() => {
            bail!("there is no query\nhint: goodput sql \"SELECT * FROM goodput_quarterly\"")
        }
        (None, None) => {
            let mut query = String::new();
            std::io::stdin().read_to_string(&mut query).context("stdin cannot be read")?;
            query
        }
    };
    if command.format == Format::Parquet && command.output.is_none() && std::io::stdout().is_terminal() {
        bail!("a Parquet file is not for a terminal\nhint: name a file with -o");
    }
    let plan = Plan::load(&args.pipeline, &args.plan_options()?).await?;
    let session = open_catalog(&plan, &args.session_options()).await?;
    let statement = session.plan_query(&query).await?;
    let rows = session.stream("the query", statement).await?;
    write_rows(rows, command.format, command.output.as_deref()).await?;
    Ok(GOOD)
}
