//! The macro that makes `Layout` and `TopologyParameters` of a list of families.

/// Makes the enums `Layout`, a topology with its routing, and `TopologyParameters`, what a machine file says
/// of it, of a list of families.
///
/// A line is a variant of `Layout` with the type in it, and the families whose machines are of that type.
/// Both enums dispatch statically.
#[macro_export]
macro_rules! families {
    ($($variant:ident($layout:ty): $($family:ident($parameters:ty)),+;)+) => {
        /// A topology together with its routing.
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        #[allow(clippy::large_enum_variant, reason = "a machine has one")]
        pub enum Layout {
            $(#[doc = concat!("Made of parameters of [`", stringify!($($parameters),+), "`].")]
            $variant($layout),)+
        }

        impl $crate::Topology for Layout {
            #[inline]
            fn endpoints(&self) -> u32 {
                match self { $(Layout::$variant(layout) => layout.endpoints(),)+ }
            }

            #[inline]
            fn switches(&self) -> u32 {
                match self { $(Layout::$variant(layout) => layout.switches(),)+ }
            }

            #[inline]
            fn ports(&self, switch: $crate::SwitchId) -> u32 {
                match self { $(Layout::$variant(layout) => layout.ports(switch),)+ }
            }

            #[inline]
            fn peer(&self, switch: $crate::SwitchId, port: $crate::PortId) -> $crate::Attachment {
                match self { $(Layout::$variant(layout) => layout.peer(switch, port),)+ }
            }

            #[inline]
            fn attachment(&self, endpoint: $crate::EndpointId) -> ($crate::SwitchId, $crate::PortId) {
                match self { $(Layout::$variant(layout) => layout.attachment(endpoint),)+ }
            }

            #[inline]
            fn link_class(&self, switch: $crate::SwitchId, port: $crate::PortId) -> $crate::LinkClass {
                match self { $(Layout::$variant(layout) => layout.link_class(switch, port),)+ }
            }

            fn link_classes(&self) -> Vec<&str> {
                match self { $(Layout::$variant(layout) => layout.link_classes(),)+ }
            }

            #[inline]
            fn switch_address(&self, switch: $crate::SwitchId) -> $crate::Address {
                match self { $(Layout::$variant(layout) => layout.switch_address(switch),)+ }
            }

            #[inline]
            fn endpoint_address(&self, endpoint: $crate::EndpointId) -> $crate::Address {
                match self { $(Layout::$variant(layout) => layout.endpoint_address(endpoint),)+ }
            }

            #[inline]
            fn reachable(&self, from: $crate::EndpointId, to: $crate::EndpointId) -> bool {
                match self { $(Layout::$variant(layout) => layout.reachable(from, to),)+ }
            }

            fn shape(&self) -> $crate::Shape {
                match self { $(Layout::$variant(layout) => layout.shape(),)+ }
            }

            fn group_of(&self, endpoint: $crate::EndpointId) -> u32 {
                match self { $(Layout::$variant(layout) => layout.group_of(endpoint),)+ }
            }

            fn parts_of(&self, endpoint: $crate::EndpointId) -> [u32; 2] {
                match self { $(Layout::$variant(layout) => layout.parts_of(endpoint),)+ }
            }

            fn endpoint_name(&self, endpoint: $crate::EndpointId) -> String {
                match self { $(Layout::$variant(layout) => layout.endpoint_name(endpoint),)+ }
            }

            fn path_kind(&self, from: $crate::EndpointId, to: $crate::EndpointId) -> Option<String> {
                match self { $(Layout::$variant(layout) => layout.path_kind(from, to),)+ }
            }

            fn endpoint(&self, name: &str) -> Result<$crate::EndpointId, $crate::UnknownEndpoint> {
                match self { $(Layout::$variant(layout) => layout.endpoint(name),)+ }
            }

            fn switch_name(&self, switch: $crate::SwitchId) -> String {
                match self { $(Layout::$variant(layout) => layout.switch_name(switch),)+ }
            }

            fn switch(&self, name: &str) -> Option<$crate::SwitchId> {
                match self { $(Layout::$variant(layout) => layout.switch(name),)+ }
            }
        }

        impl $crate::Routing for Layout {
            #[inline]
            fn virtual_channels(&self) -> u32 {
                match self { $(Layout::$variant(layout) => layout.virtual_channels(),)+ }
            }

            // One call less per hop: only the call of the routing is left where this is compiled in.
            #[inline(always)]
            fn route(
                &self,
                at: $crate::AtSwitch,
                to: $crate::Address,
                state: &mut $crate::RouteState,
                view: &mut impl $crate::LocalView,
            ) -> $crate::NextHop {
                match self { $(Layout::$variant(layout) => layout.route(at, to, state, view),)+ }
            }

            fn is_deterministic(&self) -> bool {
                match self { $(Layout::$variant(layout) => layout.is_deterministic(),)+ }
            }

            fn spreads_blocks(&self) -> bool {
                match self { $(Layout::$variant(layout) => layout.spreads_blocks(),)+ }
            }

            fn needs_published_queues(&self) -> bool {
                match self { $(Layout::$variant(layout) => layout.needs_published_queues(),)+ }
            }
        }

        impl $crate::Ranked for Layout {
            #[inline]
            fn rank(&self, channel: $crate::Channel) -> u64 {
                match self { $(Layout::$variant(layout) => layout.rank(channel),)+ }
            }

            #[inline]
            fn successors(&self, channel: $crate::Channel, visit: &mut impl FnMut($crate::Channel)) {
                match self { $(Layout::$variant(layout) => layout.successors(channel, visit),)+ }
            }

            fn representatives(&self) -> Option<Vec<$crate::Channel>> {
                match self { $(Layout::$variant(layout) => layout.representatives(),)+ }
            }
        }

        impl $crate::ClosedForms for Layout {
            fn diameter(&self) -> Option<u32> {
                match self { $(Layout::$variant(layout) => layout.diameter(),)+ }
            }

            fn mean_distance(&self) -> Option<f64> {
                match self { $(Layout::$variant(layout) => layout.mean_distance(),)+ }
            }

            fn bisection(&self) -> Option<$crate::Bisection> {
                match self { $(Layout::$variant(layout) => layout.bisection(),)+ }
            }

            fn uniform_load(&self) -> Option<$crate::ChannelLoad> {
                match self { $(Layout::$variant(layout) => layout.uniform_load(),)+ }
            }

            fn permutation_load(&self, permutation: &$crate::Permutation) -> Option<$crate::ChannelLoad> {
                match self { $(Layout::$variant(layout) => layout.permutation_load(permutation),)+ }
            }

            fn longest_route(&self) -> Option<u32> {
                match self { $(Layout::$variant(layout) => layout.longest_route(),)+ }
            }

            fn idle_detour(&self) -> u32 {
                match self { $(Layout::$variant(layout) => layout.idle_detour(),)+ }
            }

            fn source_classes(&self) -> Option<Vec<$crate::SourceClass>> {
                match self { $(Layout::$variant(layout) => layout.source_classes(),)+ }
            }
        }

        /// A topology and its routing as a machine file describes them.
        #[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
        pub enum TopologyParameters {
            $($(#[doc = concat!("Made into [`Layout::", stringify!($variant), "`].")]
            $family($parameters),)+)+
        }

        impl TopologyParameters {
            /// All families, in the order of the list.
            pub const FAMILIES: &'static [$crate::FamilyKeys] =
                &[$($($crate::FamilyKeys::of::<$parameters>()),+),+];

            /// The parameters that a machine of the family called `family` gives. `None`: there is no such
            /// family, or something is missing, and was reported.
            pub fn read(
                family: &str,
                given: &mut impl $crate::weft_keys::GivenKeys,
            ) -> Option<TopologyParameters> {
                $($(if family == <$parameters as $crate::Family>::NAME {
                    let read = <$parameters as $crate::weft_keys::Keys>::read(given);
                    return read.map(TopologyParameters::$family);
                })+)+
                None
            }

            /// The tables of its family.
            pub fn family(&self) -> $crate::FamilyKeys {
                match self {
                    $($(TopologyParameters::$family(_) => $crate::FamilyKeys::of::<$parameters>(),)+)+
                }
            }

            /// The word of its routing.
            pub fn routing(&self) -> &'static str {
                match self {
                    $($(TopologyParameters::$family(one) => one.routing.word(),)+)+
                }
            }

            /// The description of a graph that the machine names a file of.
            pub fn graph_file(&mut self) -> Option<&mut $crate::GraphDescription> {
                match self {
                    $($(TopologyParameters::$family(one) => $crate::Family::graph_file(one),)+)+
                }
            }

            /// Whether its routing looks at queues that other switches publish.
            pub fn needs_published_queues(&self) -> bool {
                match self {
                    $($(TopologyParameters::$family(one) => {
                        $crate::RoutingWord::needs_published_queues(&one.routing)
                    })+)+
                }
            }

            /// Number of endpoints; no more than 64 bits hold.
            pub fn endpoints(&self) -> u64 {
                u64::try_from(self.counts().endpoints).unwrap_or(u64::MAX)
            }

            /// Checks what the types of the keys do not say.
            ///
            /// # Errors
            /// The key to change, and how.
            pub fn check(&self) -> Result<(), $crate::weft_keys::Misfit> {
                match self {
                    $($(TopologyParameters::$family(one) => $crate::Family::check(one),)+)+
                }
            }

            /// The size of the machine.
            pub fn counts(&self) -> $crate::Counts {
                match self {
                    $($(TopologyParameters::$family(one) => $crate::Family::counts(one),)+)+
                }
            }

            /// The machine.
            ///
            /// # Errors
            /// A size that no machine has.
            pub fn build(&self) -> Result<Layout, $crate::SizeError> {
                Ok(match self {
                    $($(TopologyParameters::$family(one) =>
                        Layout::$variant($crate::Family::build(one)?),)+)+
                })
            }

            /// The places of the switches of its layout in a drawing.
            pub fn places(&self, layout: &Layout) -> $crate::Places {
                #[allow(unreachable_patterns, reason = "a list may have one family")]
                match (self, layout) {
                    $($((TopologyParameters::$family(one), Layout::$variant(layout)) =>
                        $crate::Family::places(one, layout),)+)+
                    // A layout of another family.
                    (_, other) => $crate::Places::on_circle(other),
                }
            }

            /// Kinds of links of which the topology itself knows more than their names.
            pub fn links(&self) -> &[$crate::GraphClass] {
                match self {
                    $($(TopologyParameters::$family(one) => $crate::Family::links(one),)+)+
                }
            }

            /// Small machines of every family.
            pub fn examples() -> Vec<TopologyParameters> {
                let mut examples = Vec::new();
                $($(examples.extend(
                    <$parameters as $crate::Family>::examples().into_iter().map(TopologyParameters::$family),
                );)+)+
                examples
            }
        }
    };
}
