//! Parameters and lists of columns in a parsed statement.
//!
//! A pipeline chooses its axes, so a statement cannot name them. It calls a macro where their list belongs:
//!
//! | written | becomes |
//! |---|---|
//! | `axes()` in SELECT, GROUP BY, a grouping set, or the arguments of a function | `"cell", "accelerator", ...` |
//! | `axes(x)` in SELECT | `get_field(x, 'cell') AS "cell", ...` |
//! | `names_of(axes())` in the arguments of a function | `'cell', 'accelerator', ...` |
//! | `nulls_of(axes())` in SELECT | `CAST(NULL AS VARCHAR) AS "cell", ...` |
//! | `each_of(axes())` in GROUPING SETS | one grouping set for each, beside what else stands in it |
//! | `$name` | the parameter as a literal |
//!
//! The lists are those of [`ColumnLists`]. Grouping sets that turn out equal are written once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, Select, SelectItem, Value,
    VisitMut, VisitorMut, visit_expressions,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;

use super::{Parameter, Parameters};

/// Lists of columns by the name of their macro.
#[derive(Debug, Clone, Default)]
pub struct ColumnLists(BTreeMap<String, Vec<String>>);

impl ColumnLists {
    /// Lists by name.
    pub fn new(lists: impl IntoIterator<Item = (&'static str, Vec<String>)>) -> ColumnLists {
        ColumnLists(lists.into_iter().map(|(name, columns)| (name.to_owned(), columns)).collect())
    }
}

/// Puts parameters and lists into a statement.
pub(super) fn expand(
    mut statement: Statement,
    parameters: &Parameters,
    lists: &ColumnLists,
) -> Result<Statement, String> {
    if let Statement::Statement(inner) = &mut statement {
        let mut expander = Expander { parameters, lists };
        if let ControlFlow::Break(problem) = inner.visit(&mut expander) {
            return Err(problem);
        }
    }
    Ok(statement)
}

/// The names of the parameters of a statement.
pub(super) fn parameters(statement: &Statement) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if let Statement::Statement(inner) = statement {
        let _: ControlFlow<()> = visit_expressions(inner.as_ref(), |expr| {
            if let Expr::Value(value) = expr
                && let Value::Placeholder(name) = &value.value
            {
                names.insert(name.trim_start_matches('$').to_owned());
            }
            ControlFlow::Continue(())
        });
    }
    names
}

struct Expander<'a> {
    parameters: &'a Parameters,
    lists: &'a ColumnLists,
}

/// A call of a macro.
enum Call<'a> {
    /// `axes()`.
    Columns(&'a [String]),
    /// `axes(x)`.
    Fields(&'a [String], Box<Expr>),
    /// `names_of(axes())`.
    Names(&'a [String]),
    /// `nulls_of(axes())`.
    Nulls(&'a [String]),
    /// `each_of(axes())`.
    Each(&'a [String]),
}

impl VisitorMut for Expander<'_> {
    type Break = String;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<String> {
        let mut items = Vec::with_capacity(select.projection.len());
        for item in select.projection.drain(..) {
            match &item {
                SelectItem::UnnamedExpr(expr) => match self.call(expr) {
                    Some(call) => match self.select_items(call) {
                        Ok(expanded) => items.extend(expanded),
                        Err(problem) => return ControlFlow::Break(problem),
                    },
                    None => items.push(item),
                },
                _ => items.push(item),
            }
        }
        select.projection = items;
        if let GroupByExpr::Expressions(expressions, _) = &mut select.group_by {
            *expressions = self.spliced(std::mem::take(expressions));
            for expression in expressions {
                if let Expr::GroupingSets(sets) = expression {
                    *sets = self.grouping_sets(std::mem::take(sets));
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<String> {
        if let Expr::Value(value) = expr
            && let Value::Placeholder(name) = &value.value
        {
            let Some(parameter) = self.parameters.get(name.trim_start_matches('$')) else {
                let known: Vec<_> = self.parameters.keys().map(|name| format!("${name}")).collect();
                return ControlFlow::Break(format!("there is no parameter `{name}` (there are {})", known.join(", ")));
            };
            match literal(parameter) {
                Ok(literal) => *expr = literal,
                Err(problem) => return ControlFlow::Break(problem),
            }
        }
        if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = expr {
            let given = std::mem::take(&mut list.args);
            for argument in given {
                match &argument {
                    FunctionArg::Unnamed(FunctionArgExpr::Expr(inner)) => match self.call(inner) {
                        Some(Call::Columns(columns)) => {
                            list.args.extend(columns.iter().map(|name| unnamed(column(name))));
                        }
                        Some(Call::Names(columns)) => {
                            list.args.extend(columns.iter().map(|name| unnamed(text(name))));
                        }
                        _ => list.args.push(argument),
                    },
                    _ => list.args.push(argument),
                }
            }
        }
        ControlFlow::Continue(())
    }
}

impl Expander<'_> {
    /// The macro that an expression calls, if it is one.
    fn call(&self, expr: &Expr) -> Option<Call<'_>> {
        let (name, arguments) = function(expr)?;
        if let Some(columns) = self.lists.0.get(&name) {
            return match arguments.as_slice() {
                [] => Some(Call::Columns(columns)),
                [of] => Some(Call::Fields(columns, Box::new((*of).clone()))),
                _ => None,
            };
        }
        let [inner] = arguments.as_slice() else { return None };
        let (list, arguments) = function(inner)?;
        let columns = self.lists.0.get(&list).filter(|_| arguments.is_empty())?;
        match name.as_str() {
            "names_of" => Some(Call::Names(columns)),
            "nulls_of" => Some(Call::Nulls(columns)),
            "each_of" => Some(Call::Each(columns)),
            _ => None,
        }
    }

    fn select_items(&self, call: Call<'_>) -> Result<Vec<SelectItem>, String> {
        let aliased = |expr: Expr, name: &String| SelectItem::ExprWithAlias { expr, alias: ident(name) };
        match call {
            Call::Columns(columns) => Ok(columns.iter().map(|name| SelectItem::UnnamedExpr(column(name))).collect()),
            Call::Fields(columns, of) => {
                columns.iter().map(|name| Ok(aliased(field((*of).clone(), name)?, name))).collect()
            }
            Call::Nulls(columns) => {
                columns.iter().map(|name| Ok(aliased(template("CAST(NULL AS VARCHAR)")?, name))).collect()
            }
            Call::Names(_) | Call::Each(_) => {
                Err("`names_of` and `each_of` do not belong into a SELECT list".to_owned())
            }
        }
    }

    /// A list of expressions with the columns of macros put in.
    fn spliced(&self, expressions: Vec<Expr>) -> Vec<Expr> {
        let splice = |expr: Expr| match self.call(&expr) {
            Some(Call::Columns(columns)) => columns.iter().map(|name| column(name)).collect(),
            _ => vec![expr],
        };
        expressions.into_iter().flat_map(splice).collect()
    }

    fn grouping_sets(&self, sets: Vec<Vec<Expr>>) -> Vec<Vec<Expr>> {
        let mut expanded: Vec<Vec<Expr>> = Vec::new();
        for set in sets {
            let each = set.iter().position(|expr| matches!(self.call(expr), Some(Call::Each(_))));
            let variants: Vec<Vec<Expr>> = match each.and_then(|at| self.call(&set[at]).map(|call| (at, call))) {
                Some((at, Call::Each(columns))) => columns
                    .iter()
                    .map(|name| {
                        let mut variant = set.clone();
                        variant[at] = column(name);
                        variant
                    })
                    .collect(),
                _ => vec![set.clone()],
            };
            for variant in variants {
                let variant = self.spliced(variant);
                let is_known = expanded
                    .iter()
                    .any(|known| known.len() == variant.len() && variant.iter().all(|expr| known.contains(expr)));
                if !is_known {
                    expanded.push(variant);
                }
            }
        }
        expanded
    }
}

/// Name and arguments of a plain function call.
fn function(expr: &Expr) -> Option<(String, Vec<&Expr>)> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    });
    Some((name.to_string().to_ascii_lowercase(), arguments.collect::<Option<_>>()?))
}

fn ident(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn column(name: &str) -> Expr {
    Expr::Identifier(ident(name))
}

fn text(value: &str) -> Expr {
    Expr::Value(Value::SingleQuotedString(value.to_owned()).into())
}

fn unnamed(expr: Expr) -> FunctionArg {
    FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))
}

/// `get_field(of, 'name')`.
fn field(of: Expr, name: &str) -> Result<Expr, String> {
    let mut call = template("get_field()")?;
    if let Expr::Function(Function { args: FunctionArguments::List(list), .. }) = &mut call {
        list.args = vec![unnamed(of), unnamed(text(name))];
    }
    Ok(call)
}

fn literal(parameter: &Parameter) -> Result<Expr, String> {
    Ok(match parameter {
        Parameter::Text(value) => text(value),
        Parameter::Bool(value) => Expr::Value(Value::Boolean(*value).into()),
        Parameter::Int(value) => template(&format!("CAST({value} AS BIGINT)"))?,
        Parameter::Float(value) => template(&format!("CAST({value:?} AS DOUBLE)"))?,
        Parameter::Date(day) => template(&format!("DATE '{day}'"))?,
    })
}

/// Parses an expression of ours.
fn template(expression: &str) -> Result<Expr, String> {
    let parser = Parser::new(&GenericDialect {}).try_with_sql(expression);
    parser.and_then(|mut parser| parser.parse_expr()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse_statement;
    use goodput_model::Day;

    fn check(written: &str, expected: Result<&str, &str>) {
        let lists = ColumnLists::new([
            ("axes", vec!["cell".to_owned(), "user".to_owned()]),
            ("pool_axes", vec!["cell".to_owned()]),
        ]);
        let parameters = Parameters::from([
            ("day".to_owned(), Parameter::Date(Day(0))),
            ("name".to_owned(), Parameter::Text("o'brien".to_owned())),
            ("n".to_owned(), Parameter::Int(-3)),
        ]);
        let statement = parse_statement("x.sql", written).map_err(|error| error.to_string());
        let found = statement.and_then(|statement| expand(statement, &parameters, &lists));
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found.to_string(), expected),
            (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
            (found, _) => panic!("{written}: {found:?}"),
        }
    }

    #[test]
    fn statements_are_expanded() {
        check("SELECT axes(), 1 FROM t", Ok(r#"SELECT "cell", "user", 1 FROM t"#));
        check(
            "SELECT axes(b) FROM t",
            Ok(r#"SELECT get_field(b, 'cell') AS "cell", get_field(b, 'user') AS "user" FROM t"#),
        );
        check(
            "SELECT nulls_of(axes()) FROM t",
            Ok(r#"SELECT CAST(NULL AS VARCHAR) AS "cell", CAST(NULL AS VARCHAR) AS "user" FROM t"#),
        );
        check(
            "WITH x AS (SELECT f(axes(), names_of(axes())) FROM t GROUP BY a, axes()) SELECT * FROM x",
            Ok(
                r#"WITH x AS (SELECT f("cell", "user", 'cell', 'user') FROM t GROUP BY a, "cell", "user") SELECT * FROM x"#,
            ),
        );
        check(
            "SELECT 1 FROM t GROUP BY GROUPING SETS ((q), (q, each_of(axes())), (q, pool_axes()), (q, axes()))",
            Ok(r#"SELECT 1 FROM t GROUP BY GROUPING SETS ((q), (q, "cell"), (q, "user"), (q, "cell", "user"))"#),
        );
        check("SELECT $day, $name, $n", Ok("SELECT DATE '1970-01-01', 'o''brien', CAST(-3 AS BIGINT)"));
        check("SELECT $x", Err("no parameter `$x`"));
    }
}
