//! The families of topologies: one line for each kind of layout.

use crate::dragonfly::{DragonflyLayout, DragonflyParameters};
use crate::exanest::{ExanestOrder, ExanestParameters};
use crate::kary_tree::{KaryTreeParameters, UpDown};
use crate::megafly::{MegaflyLayout, MegaflyParameters};
use crate::star::{StarParameters, StarRouting};
use crate::torus::{DimensionOrder, MeshParameters, TorusParameters};

crate::families! {
    Torus(DimensionOrder): Torus(TorusParameters), Mesh(MeshParameters);
    Exanest(ExanestOrder): Exanest(ExanestParameters);
    KaryTree(UpDown): KaryTree(KaryTreeParameters);
    Dragonfly(DragonflyLayout): Dragonfly(DragonflyParameters);
    Megafly(MegaflyLayout): Megafly(MegaflyParameters);
    Star(StarRouting): Star(StarParameters);
}
