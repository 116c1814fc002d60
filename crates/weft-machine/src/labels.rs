//! `[labels]`: what the machine's own documents call its parts.

use serde::{Deserialize, Serialize};

weft_keys::keys! {
    /// Names of a machine's parts in the words of its own documents, which breakdowns tell beside their own.
    #[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
    pub struct Labels {
        /// Links, and the bits on them.
        link: Option<String>;
        /// Switches, where packets do not wait.
        switch: Option<String>;
        /// The places where packets wait for a link.
        buffer: Option<String>;
        /// The blocks of an interface that send.
        send: Option<String>;
        /// The blocks of an interface that receive.
        receive: Option<String>;
    }
}

#[cfg(test)]
mod tests {
    use crate::load;

    /// Catches names that are lost, and a key that is none of a part.
    #[test]
    fn parts_have_the_names_of_the_file() {
        let labels = load("exanest", &["labels.switch='Network Router'"]).unwrap().labels;
        assert_eq!((labels.switch.as_deref(), labels.link), (Some("Network Router"), None));
        let error = load("exanest", &["labels.swich='Router'"]).unwrap_err().to_string();
        assert!(error.contains("switch"), "{error}");
    }
}
