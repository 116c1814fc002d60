use super::*;
#[test]
fn show() {
    for s in SHIPPED { match s.check(&[] as &[&str]) { Ok(m) => println!("{} {} {:#?}", m.name, m.topology.endpoints(), m.fabric), Err(e) => println!("{e}") } }
}
