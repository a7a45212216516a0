//! Host lists as schedulers write them: `a[0121-0129,0131],b7`.

use std::sync::Arc;

use arrow::array::{Array, AsArray, ListBuilder, StringBuilder};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

/// The most hosts that one list may name: more is a slip of the pen, not a cluster.
const MOST_HOSTS: usize = 1_000_000;

/// `hostlist(text)`: the names of the hosts, in the order in which they are written.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Hostlist {
    signature: Signature,
}

impl Hostlist {
    /// The function.
    pub fn new() -> Hostlist {
        Hostlist { signature: Signature::new(TypeSignature::Exact(vec![DataType::Utf8]), Volatility::Immutable) }
    }
}

impl Default for Hostlist {
    fn default() -> Hostlist {
        Hostlist::new()
    }
}

impl ScalarUDFImpl for Hostlist {
    fn name(&self) -> &str {
        "hostlist"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true))))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let texts = arrays[0].as_string::<i32>();
        let mut lists = ListBuilder::new(StringBuilder::new());
        for row in 0..texts.len() {
            if texts.is_null(row) {
                lists.append_null();
                continue;
            }
            match expand(texts.value(row)) {
                Ok(hosts) => {
                    hosts.iter().for_each(|host| lists.values().append_value(host));
                    lists.append(true);
                }
                Err(problem) => return exec_err!("host list `{}`: {problem}", texts.value(row)),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(lists.finish())))
    }
}

/// The names in a host list; numbers keep the width in which they are written.
pub fn expand(text: &str) -> std::result::Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    for part in split_outside_brackets(text)? {
        let part = part.trim();
        if part.is_empty() {
            return Err("a name is empty".to_owned());
        }
        expand_part(part, &mut hosts)?;
    }
    Ok(hosts)
}

fn split_outside_brackets(text: &str) -> std::result::Result<Vec<&str>, String> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, character) in text.char_indices() {
        match character {
            '[' if depth == 0 => depth = 1,
            '[' => return Err("brackets within brackets".to_owned()),
            ']' => depth = depth.checked_sub(1).ok_or("a bracket closes that never opened")?,
            ',' if depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("a bracket is not closed".to_owned());
    }
    parts.push(&text[begin..]);
    Ok(parts)
}

/// Expands the first bracket of a name and then the rest of it.
fn expand_part(part: &str, hosts: &mut Vec<String>) -> std::result::Result<(), String> {
    let Some((prefix, rest)) = part.split_once('[') else {
        if hosts.len() >= MOST_HOSTS {
            return Err(format!("it names more than {MOST_HOSTS} hosts"));
        }
        hosts.push(part.to_owned());
        return Ok(());
    };
    let Some((ranges, suffix)) = rest.split_once(']') else { return Err("a bracket is not closed".to_owned()) };
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |digits: &str| -> std::result::Result<u64, String> {
            let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = if is_number { digits.parse().ok() } else { None };
            number.ok_or_else(|| format!("`{digits}` is no number"))
        };
        let width = first.len();
        let (first, last) = (number(first)?, number(last)?);
        if last < first {
            return Err(format!("range `{range}` runs backwards"));
        }
        for number in first..=last {
            expand_part(&format!("{prefix}{number:0width$}{suffix}"), hosts)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn host_lists() {
        let cases: [(&str, &[&str]); 6] = [
            ("a0831", &["a0831"]),
            ("a[0531-0533],a0831", &["a0531", "a0532", "a0533", "a0831"]),
            ("a[1,3-4]", &["a1", "a3", "a4"]),
            ("a[9-11]", &["a9", "a10", "a11"]),
            ("r[1-2]n[01-02]", &["r1n01", "r1n02", "r2n01", "r2n02"]),
            ("a, b", &["a", "b"]),
        ];
        for (text, expected) in cases {
            assert_eq!(
                expand(text).as_deref(),
                Ok(expected.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>().as_slice())
            );
        }
    }

    #[test]
    fn what_is_no_host_list() {
        for text in
            ["", "a[", "a]", "a[1-]", "a[x]", "a[[1]]", "a[2-1]", "a,,b", "a[1-99999999999999999999]", "a[0-999999999]"]
        {
            assert!(expand(text).is_err(), "{text}");
        }
    }
}
