//! The families of topologies: one line for each kind of layout.

use crate::dragonfly::{DragonflyLayout, DragonflyParameters};
use crate::exanest::{ExanestOrder, ExanestParameters};
use crate::graph::{GraphLayout, GraphParameters};
use crate::hyperx::{FullyConnectedParameters, HyperXLayout, HyperXParameters, HypercubeParameters};
use crate::kary_tree::{KaryTreeParameters, UpDown};
use crate::megafly::{MegaflyLayout, MegaflyParameters};
use crate::slim_fly::SlimFlyParameters;
use crate::star::{StarParameters, StarRouting};
use crate::torus::{DimensionOrder, MeshParameters, TorusParameters};
use crate::tree::{SpineLeafParameters, TreeParameters, TreeUpDown};

crate::families! {
    Torus(DimensionOrder): Torus(TorusParameters), Mesh(MeshParameters);
    Exanest(ExanestOrder): Exanest(ExanestParameters);
    KaryTree(UpDown): KaryTree(KaryTreeParameters);
    Tree(TreeUpDown): Tree(TreeParameters), SpineLeaf(SpineLeafParameters);
    Dragonfly(DragonflyLayout): Dragonfly(DragonflyParameters);
    HyperX(HyperXLayout):
        HyperX(HyperXParameters),
        Hypercube(HypercubeParameters),
        FullyConnected(FullyConnectedParameters);
    Megafly(MegaflyLayout): Megafly(MegaflyParameters);
    Star(StarRouting): Star(StarParameters);
    Graph(GraphLayout): Graph(GraphParameters), SlimFly(SlimFlyParameters);
}
