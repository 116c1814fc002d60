//! The link layer of a kind of link: `protocol` and the keys that go with it.
//!
//! ```text
//!   [links.CLASS] has a protocol?  ──yes──► its keys; a protocol's own values for those that it leaves out
//!        │ no
//!   [links.default] has one?       ──yes──► CLASS's keys, then the default's, then the protocol's
//!        │ no
//!   CLASS's keys, then the default's; `code` and `framing` must be there
//! ```
//! A protocol that comes from a `--set` leaves behind what the file says of the old one: `code`, `framing`,
//! `credit`, `replay`, `replay_buffer` and `fec` of its section. So one `--set` swaps a link layer.

use super::constant::{Constant, Kind};
use super::fabric::RawLink;
use super::read::{Entry, Reader, join};
use weft_fabric::{
    ErrorRate, Fec, FecName, LinkKeys, LinkLayer, LinkParameters, LinkProtocol, ProtocolName, ProtocolRules,
    ReplayParameters,
};
use weft_keys::{KeyType, Problem};
use weft_units::{BitRate, Bytes, LineCode, Span};

impl RawLink {
    /// Drops what a file says of another protocol than the one that a `--set` names. `path` is the section's.
    pub(super) fn drop_what_is_left_behind(&mut self, path: &str, reader: &mut Reader<'_>) {
        let protocol = self.entry("protocol", |keys| keys.protocol);
        let Some(keys) = self.keys.as_mut().filter(|_| protocol.is_some_and(|entry| entry.location.is_set()))
        else {
            return;
        };
        let locations = &self.locations;
        let mut is_left = |key: &str| {
            let is_left = !locations.of(key).is_set();
            if is_left {
                reader.forget(&join(path, key));
            }
            is_left
        };
        keys.code.take_if(|_| is_left("code"));
        keys.framing.take_if(|_| is_left("framing"));
        keys.credit.take_if(|_| is_left("credit"));
        keys.replay.take_if(|_| is_left("replay"));
        keys.replay_buffer.take_if(|_| is_left("replay_buffer"));
        keys.fec.take_if(|_| is_left("fec"));
    }
}

/// The sections that say how the link layer of a class is.
pub(super) struct LayerSections<'l> {
    pub class: &'l str,
    pub own: Option<&'l RawLink>,
    pub default: Option<&'l RawLink>,
    /// Bytes of a packet's footer, which may hold a frame check sequence.
    pub footer: Bytes,
}

/// The parameters that a link layer takes part in.
#[derive(Clone, Copy)]
pub(super) struct LayerOfLinks {
    pub code: LineCode,
    pub framing: Bytes,
    /// Lanes, each of the rate that is written.
    lanes: u32,
    /// Bytes that adapters at the two ends hold.
    held: Bytes,
    layer: LinkLayer,
}

impl LayerOfLinks {
    /// Links of this layer on lanes of `rate`, whose line has a latency of `latency`.
    pub fn links(&self, rate: BitRate, latency: Span, routing: Span) -> LinkParameters {
        let LayerOfLinks { code, framing, lanes, held, layer } = *self;
        let rate = total(rate, lanes);
        let latency = latency + layer.fec.map_or(Span::ZERO, |fec| fec.store_time(rate)) + rate.span(held);
        LinkParameters { rate, code, latency, framing, routing, layer }
    }
}

fn total(lane: BitRate, lanes: u32) -> BitRate {
    BitRate::from_bits_per_second(lane.bits_per_second().saturating_mul(u64::from(lanes)))
}

impl<'l> LayerSections<'l> {
    /// The protocol, and the section that names it.
    fn protocol(&self) -> Option<(Entry<ProtocolName>, &'l str)> {
        let of = |link: Option<&RawLink>| link?.entry("protocol", |keys| keys.protocol);
        let own = of(self.own).map(|entry| (entry, self.class));
        own.or_else(|| Some((of(self.default)?, "default")))
    }

    /// The entry of a key that goes with the protocol: not the default's where the class has a protocol of
    /// its own.
    fn pick<T>(&self, key: &str, field: fn(&LinkKeys) -> Option<T>) -> Option<Entry<T>> {
        let is_own = self.own.is_some_and(|link| link.entry("protocol", |keys| keys.protocol).is_some());
        let of = |link: Option<&RawLink>| link?.entry(key, field);
        of(self.own).or_else(|| of(self.default.filter(|_| !is_own)))
    }

    /// The line code as written; without a protocol's own the default's holds for all.
    pub fn code(&self) -> Option<Entry<LineCode>> {
        self.written("code", |keys| keys.code)
    }

    /// The framing as written.
    pub fn framing(&self) -> Option<Entry<Bytes>> {
        self.written("framing", |keys| keys.framing)
    }

    /// Bytes for a credit as written.
    pub fn credit(&self) -> Option<Entry<Bytes>> {
        self.pick("credit", |keys| keys.credit)
    }

    fn written<T>(&self, key: &str, field: fn(&LinkKeys) -> Option<T>) -> Option<Entry<T>> {
        let entry = self.pick(key, field);
        let of_default = || self.default.and_then(|link| link.entry(key, field));
        if self.rules().is_some() { entry } else { entry.or_else(of_default) }
    }

    /// The rules of the protocol; `None`: there is none.
    pub fn rules(&self) -> Option<&'static ProtocolRules> {
        Some(self.protocol()?.0.value.protocol()?.rules())
    }

    /// The layer of links whose lanes have `rate`. `None`: something is wrong, which was reported, or `code`
    /// or
    /// `framing` is missing.
    pub fn check(&self, rate: &Entry<BitRate>, reader: &mut Reader<'_>) -> Option<LayerOfLinks> {
        let Some((entry, section)) = self.protocol().filter(|(entry, _)| entry.value != ProtocolName::None)
        else {
            return self.check_without_protocol(reader);
        };
        let protocol = entry.value.protocol()?;
        let rules = protocol.rules();
        let lanes = self.lanes(&entry, reader)?;
        check_lane(rules, rate, &entry, reader)?;
        let code = match self.code() {
            Some(code) if protocol == LinkProtocol::Ethernet && code.value != LineCode::NONE => {
                let problem = Problem::new(
                    "an Ethernet link has no `code` of its own",
                    "contradicts protocol = \"ethernet\"",
                    "remove it: `rate` is that of the MAC, and 64b66b and FEC are paid by the faster line",
                );
                reader.report(code.location, problem);
                return None;
            }
            Some(code) => code.value,
            None => {
                note(format!("links.{section}.code"), rules.code.show(), rules, reader);
                rules.code
            }
        };
        let framing = match self.framing() {
            Some(framing) => framing.value,
            None => {
                let check = if self.footer < rules.frame_check { rules.frame_check } else { Bytes::ZERO };
                note(format!("links.{section}.framing"), (rules.framing + check).show(), rules, reader);
                rules.framing + check
            }
        };
        let (fec, symbol_errors) = self.fec(protocol, total(rate.value, lanes), rate, reader)?;
        if let (Some(fec), None) = (fec, self.pick("fec", |keys| keys.fec)) {
            note(format!("links.{section}.fec"), FecName::of(fec).show(), rules, reader);
        }
        let replay = self.pick("replay", |keys| keys.replay).map_or(rules.replays, |replay| replay.value);
        let layer = LinkLayer {
            word: rules.word.max(rules.lane_word * u64::from(lanes)),
            // What a file gives is an average.
            framed: if self.framing().is_some() { Bytes::ZERO } else { framing },
            smallest: rules.smallest,
            gap: rules.gap,
            replay: self.replay(replay, reader)?,
            bit_errors: self.bit_errors(),
            fec,
            symbol_errors,
            credit: Bytes::ZERO,
            power: None,
        };
        Some(LayerOfLinks { code, framing, lanes, held: rules.held, layer })
    }

    /// The same where `code` and `framing` say all.
    fn check_without_protocol(&self, reader: &mut Reader<'_>) -> Option<LayerOfLinks> {
        let lanes = self.pick("lanes", |keys| keys.lanes).map(|entry| ("lanes", entry.location));
        let replay = self.pick("replay", |keys| keys.replay).map(|entry| ("replay", entry.location));
        let buffer = self
            .pick("replay_buffer", |keys| keys.replay_buffer)
            .map(|entry| ("replay_buffer", entry.location));
        let fec = self.pick("fec", |keys| keys.fec).map(|entry| ("fec", entry.location));
        let symbols = self
            .pick("symbol_errors", |keys| keys.symbol_errors)
            .map(|entry| ("symbol_errors", entry.location));
        if let Some((key, location)) = lanes.or(replay).or(buffer).or(fec).or(symbols) {
            let class = self.class;
            let problem = Problem::new(
                format!("`{key}` means nothing for links of class `{class}`: they have no protocol"),
                "not used",
                format!(
                    "remove it, or add protocol = \"aurora\" or another to [links.{class}] or [links.default]"
                ),
            );
            reader.report(location, problem);
            return None;
        }
        let (code, framing) = (self.code()?.value, self.framing()?.value);
        let layer = LinkLayer { bit_errors: self.bit_errors(), ..LinkLayer::PLAIN };
        Some(LayerOfLinks { code, framing, lanes: 1, held: Bytes::ZERO, layer })
    }

    fn bit_errors(&self) -> ErrorRate {
        self.pick("bit_errors", |keys| keys.bit_errors).map_or(ErrorRate::NONE, |rate| rate.value)
    }

    fn lanes(&self, protocol: &Entry<ProtocolName>, reader: &mut Reader<'_>) -> Option<u32> {
        let Some(lanes) = self.pick("lanes", |keys| keys.lanes) else { return Some(1) };
        let most = protocol.value.protocol()?.rules().lanes;
        if lanes.value <= most {
            return Some(lanes.value);
        }
        let problem = Problem::new(
            format!("a link of protocol `{}` has no {} lanes", protocol.value.show(), lanes.value),
            "too many",
            format!("write lanes = 1 to {most}; `rate` is that of one lane"),
        );
        reader.report(lanes.location, problem);
        None
    }

    /// Repetition on the link, if it `replays`.
    fn replay(&self, replays: bool, reader: &mut Reader<'_>) -> Option<Option<ReplayParameters>> {
        let buffer = self.pick("replay_buffer", |keys| keys.replay_buffer);
        match buffer {
            Some(entry) if !replays => {
                let problem = Problem::new(
                    format!("links of class `{}` have no replay, so no replay buffer", self.class),
                    "not used",
                    "remove it, or write replay = true",
                );
                reader.report(entry.location, problem);
                None
            }
            buffer => Some(replays.then(|| ReplayParameters { buffer: buffer.map(|entry| entry.value) })),
        }
    }

    /// FEC and the chance of its symbols to be wrong.
    fn fec(
        &self,
        protocol: LinkProtocol,
        rate: BitRate,
        written: &Entry<BitRate>,
        reader: &mut Reader<'_>,
    ) -> Option<(Option<Fec>, ErrorRate)> {
        let fits = |fec: Fec| protocol == LinkProtocol::Ethernet && fec.fits(rate);
        let named = self.pick("fec", |keys| keys.fec).map(|entry| (entry.location, entry.value.fec()));
        let fec = match named {
            None => protocol.usual_fec(rate),
            Some((_, Some(fec))) if fits(fec) => Some(fec),
            // Left behind in the file while a `--set` tries another rate.
            Some((location, Some(_))) if written.location.is_set() && !location.is_set() => {
                protocol.usual_fec(rate)
            }
            Some((location, Some(fec))) => {
                let rates: Vec<String> = fec.rates().iter().map(BitRate::to_string).collect();
                let problem = Problem::new(
                    format!(
                        "links of class `{}` cannot carry RS({},514) at {rate}",
                        self.class,
                        fec.symbols()
                    ),
                    "this code and this rate",
                    format!("write fec = \"none\", or protocol = \"ethernet\" at {}", rates.join(", ")),
                );
                reader.report(location, problem);
                return None;
            }
            Some((_, None)) => None,
        };
        let errors = self.pick("symbol_errors", |keys| keys.symbol_errors);
        match errors {
            Some(errors) if fec.is_none() && !errors.value.is_none() => {
                let problem = Problem::new(
                    format!("links of class `{}` have no FEC, so no symbols of it", self.class),
                    "not used",
                    "write bit_errors instead, or fec = \"rs528\" or \"rs544\" at a rate that has it",
                );
                reader.report(errors.location, problem);
                None
            }
            errors => Some((fec, errors.map_or(ErrorRate::NONE, |errors| errors.value))),
        }
    }
}

/// Checks that a lane is not too fast for the protocol.
fn check_lane(
    rules: &ProtocolRules,
    rate: &Entry<BitRate>,
    protocol: &Entry<ProtocolName>,
    reader: &mut Reader<'_>,
) -> Option<()> {
    let Some(fastest) = rules.fastest_lane.filter(|&fastest| rate.value > fastest) else { return Some(()) };
    let location = if protocol.location.is_set() { protocol.location } else { rate.location };
    let problem = Problem::new(
        format!("a lane of protocol `{}` carries no {}", protocol.value.show(), rate.value),
        "too fast",
        format!("write a rate of at most {fastest} per lane, and lanes = 2 to {} for more", rules.lanes),
    );
    reader.report(location, problem);
    None
}

/// Enters a value of the key at `path` that a protocol has given, once.
fn note(path: String, value: String, rules: &ProtocolRules, reader: &mut Reader<'_>) {
    if reader.constants.iter().any(|constant| constant.path == path) {
        return;
    }
    let kind = if rules.is_published { Kind::Datasheet } else { Kind::Assumed };
    reader.constants.push(Constant {
        path,
        value,
        kind,
        source: Some(rules.source.to_owned()),
        how: Some("of the link layer's protocol".to_owned()),
        row: None,
        range: None,
        range_source: None,
    });
}

#[cfg(test)]
mod tests {
    use crate::{Fabric, Machine, load};
    use weft_fabric::{Fec, GapRule, LinkLayer, LinkParameters, LinkProtocol, ReplayParameters};
    use weft_units::{BitRate, Bytes, LineCode};

    fn links(machine: &Machine, class: &str) -> LinkParameters {
        let Fabric::Packet { links, .. } = &machine.fabric else { panic!("packets are the default") };
        links[class]
    }

    /// Catches a protocol that one `--set` does not swap: what the file says of the old one stays behind, and
    /// links inside the card keep theirs.
    #[test]
    fn one_set_swaps_the_link_layer() {
        // Ports that no line is faster than.
        let wide = "switch.datapath=32";
        let shipped = load("communication-ip", &[wide]).unwrap();
        let [bus, line] = ["endpoint", "x"].map(|class| links(&shipped, class));
        assert_eq!((bus.code, bus.layer.replay), (LineCode::NONE, None));
        // The file's Link Ctrl above Aurora, on two lanes.
        assert_eq!((line.layer.word.get(), line.layer.replay), (16, Some(ReplayParameters { buffer: None })));
        assert_eq!(line.rate, BitRate::from_bits_per_second(20_625_000_000));
        let same =
            [wide, "links.default.protocol=aurora", "links.default.rate=5Gb/s", "links.default.lanes=4"];
        let same = links(&load("communication-ip", &same).unwrap(), "x");
        // The rate is that of a lane. Aurora has no replay of its own.
        assert_eq!(same.rate, BitRate::from_gigabits(20));
        assert_eq!((same.layer.word.get(), same.layer.replay), (32, None));
        for (name, protocol) in ["exanet", "apelink", "aurora", "bxi2", "ethernet", "apenet-bxi2"]
            .into_iter()
            .zip(LinkProtocol::ALL)
        {
            let protocol_set = format!("links.default.protocol={name}");
            let machine = load("communication-ip", &[wide, &protocol_set]).unwrap();
            let (link, rules) = (links(&machine, "x"), protocol.rules());
            assert_eq!(
                (link.code, link.framing, link.layer.gap),
                (rules.code, rules.framing, rules.gap),
                "{name}"
            );
            assert_eq!(link.layer.replay.is_some(), rules.replays, "{name}");
            assert_eq!((link.rate, links(&machine, "endpoint")), (line.rate, bus), "{name}");
            assert!(machine.get("links.x.framing").unwrap().source.is_some(), "{name}");
        }
    }

    /// Catches an adapter that costs nothing, or more than the words that it holds at both ends.
    #[test]
    fn an_adapter_adds_the_words_that_it_holds() {
        let of = |protocol: &str| {
            let protocol = format!("links.default.protocol={protocol}");
            let sets = [&protocol, "links.default.rate=10Gb/s", "switch.datapath=32"];
            links(&load("communication-ip", &sets).unwrap(), "x")
        };
        let (bare, adapted) = (of("bxi2"), of("apenet-bxi2"));
        assert_eq!((adapted.latency - bare.latency).as_ps(), 12_800, "32 bytes at 20 Gb/s");
        assert_eq!(
            (adapted.code, adapted.framing, adapted.layer.replay),
            (bare.code, bare.framing, bare.layer.replay)
        );
        assert_eq!((bare.layer.word.get(), adapted.layer.word.get()), (8, 16));
    }

    /// Catches keys that a file gives beside a protocol and that are not taken: the calibrated framing of
    /// exanest.
    #[test]
    fn keys_beside_a_protocol_hold() {
        let sets = [
            "links.default.protocol=exanet",
            "links.default.framing=99",
            "links.router.protocol=none",
            "links.router.code=none",
        ];
        let exanest = load("exanest", &sets).unwrap();
        let x = links(&exanest, "x");
        assert_eq!((x.framing.get(), x.layer.framed, x.layer.word.get()), (99, Bytes::ZERO, 16));
        assert_eq!(links(&exanest, "qfdb").layer.word.get(), 16);
        assert_eq!(links(&exanest, "router").layer, LinkLayer::PLAIN);
        // The word for a credit is of the protocol that the file names.
        assert_eq!(x.layer.credit, Bytes::ZERO);
        let shipped = load("exanest", &[] as &[&str]).unwrap();
        let credits = ["x", "qfdb", "router", "endpoint"].map(|class| links(&shipped, class).layer.credit);
        assert_eq!(credits.map(Bytes::get), [16, 16, 0, 0]);
        let set = load("exanest", &["links.default.protocol=aurora", "links.default.framing=7"]).unwrap();
        assert_eq!((links(&set, "x").framing.get(), links(&set, "x").code), (7, LineCode::B64_66));
    }

    /// Catches a frame check sequence that is counted twice or not at all, and FEC that is not that of the
    /// rate.
    #[test]
    fn ethernet_follows_its_rate_and_the_packet() {
        let ethernet = |sets: &[&str]| {
            let sets = [&["links.default.protocol=ethernet"], sets].concat();
            links(&load("bxi2-fattree", &sets).unwrap(), "tree")
        };
        let link = ethernet(&[]);
        let expected = (20, 64, GapRule::DeficitIdle, Some(Fec::Rs528));
        assert_eq!((link.framing.get(), link.layer.smallest.get(), link.layer.gap, link.layer.fec), expected);
        assert_eq!(link.latency.as_ps(), 125_000 + 51_200);
        assert_eq!(ethernet(&["packet.footer=0"]).framing.get(), 24);
        let fec = |rate: &str| ethernet(&[&format!("links.default.rate={rate}")]).layer.fec;
        assert_eq!(fec("400Gb/s"), Some(Fec::Rs544));
        assert_eq!(fec("10Gb/s"), None);
        let slower =
            load("bxi3-fattree", &["links.default.protocol=ethernet", "links.default.rate=10Gb/s"]).unwrap();
        assert_eq!(links(&slower, "tree").layer.fec, None);
        // The time of two code words adds to the latency of the file.
        let bxi3 = links(&load("bxi3-fattree", &[] as &[&str]).unwrap(), "tree");
        assert_eq!((bxi3.latency.as_ps(), bxi3.layer.fec), (99_400 + 25_600, Some(Fec::Rs544)));
    }

    /// Catches keys that contradict each other and are taken all the same; each error names the mend.
    #[test]
    fn contradictions_are_refused() {
        let slow =
            ["links.default.rate=10Gb/s", "links.default.fec=rs544", "links.default.protocol=ethernet"];
        let error = load("bxi3-fattree", &slow).unwrap_err().to_string();
        assert!(error.contains("cannot carry RS(544,514) at 10Gb/s"), "{error}");
        for (machine, sets, said, mend) in [
            ("communication-ip", "links.default.lanes=5", "`aurora` has no 5 lanes", "lanes = 1 to 4"),
            (
                "communication-ip",
                "links.default.rate=40Gb/s",
                "`aurora` carries no 40Gb/s",
                "at most 32750Mb/s per lane",
            ),
            ("bxi3-fattree", "links.default.code=64b66b", "no `code` of its own", "that of the MAC"),
            (
                "bxi3-fattree",
                "links.default.fec=rs528",
                "cannot carry RS(528,514) at 400Gb/s",
                "25Gb/s, 100Gb/s",
            ),
            (
                "bxi2-fattree",
                "links.default.fec=rs528",
                "cannot carry RS(528,514)",
                "protocol = \"ethernet\"",
            ),
            ("bxi2-fattree", "links.default.symbol_errors=5", "have no FEC", "bit_errors instead"),
            ("bxi3-fattree", "links.default.replay_buffer=9K", "have no replay", "replay = true"),
            ("communication-ip", "links.endpoint.lanes=2", "they have no protocol", "protocol = \"aurora\""),
            ("exanest", "links.default.credit=33", "longer than the shortest packet", "at most credit = 32"),
            (
                "exanest",
                "links.default.bit_errors=600000000000000",
                "not an error rate",
                "from 0 to 500000000000000",
            ),
            ("exanest", "links.default.protocol=token-ring", "link layer", "exanet"),
        ] {
            let protocol = match machine {
                "bxi3-fattree" => vec!["links.default.protocol=ethernet"],
                "communication-ip" => vec!["links.default.protocol=aurora"],
                "bxi2-fattree" => vec!["links.default.protocol=bxi2"],
                _ => vec!["links.default.protocol=exanet"],
            };
            let error = load(machine, &[protocol, vec![sets]].concat()).unwrap_err().to_string();
            assert!(error.contains(said) && error.contains(mend), "{sets}: {error}");
        }
    }
}
