//! Tests of the tree.

use super::*;

#[test]
fn a_million_releases_leave_no_trace() {
    let mut tree = Tree::default();
    tree.mark(ROOT);
    tree.set_kind(ROOT, Kind::Pending);
    tree.expand(ROOT, Kind::Decision(Player::One), &[0, 1], &[0.5, 0.5]);
    tree.ascend(&[ROOT], Value(0.1));
    for id in [ROOT, 1] {
        tree.mark(id);
    }
    tree.ascend(&[ROOT, 1], Value(0.3));
    let before = (tree.node(ROOT).value_sum.to_bits(), tree.node(1).value_sum.to_bits());
    assert_eq!(tree.node(1).value_sum, -f64::from(0.3_f32));
    for _ in 0..1_000_000 {
        tree.mark(ROOT);
        tree.mark(1);
        tree.release(&[ROOT, 1]);
    }
    assert_eq!(before, (tree.node(ROOT).value_sum.to_bits(), tree.node(1).value_sum.to_bits()));
    assert!(tree.nodes().iter().all(|node| node.in_flight == 0));
}

/// What is known below a node, each child by its action; in depth-first order.
fn below(tree: &Tree, id: NodeId, out: &mut Vec<(Action, u32, u64, Vec<u64>)>) {
    for (child, node) in (tree.node(id).first_child..).zip(tree.children(id)) {
        let sums = tree.sums(child).iter().map(|sum| sum.to_bits()).collect();
        out.push((node.action, node.visits, node.value_sum.to_bits(), sums));
        below(tree, child, out);
    }
}

#[test]
fn a_subtree_moves_up_whole_and_alone() {
    for seed in 0..200 {
        let mut stream = crate::rng::Stream::keyed(&[seed]);
        let mut tree = Tree::new(usize::MAX, [0, 3][seed as usize % 2]);
        for _ in 0..60 {
            let mut path = vec![ROOT];
            while let Some(children) = Some(tree.children(path[path.len() - 1])).filter(|all| !all.is_empty()) {
                path.push(tree.node(path[path.len() - 1]).first_child + stream.below(children.len()) as NodeId);
            }
            path.iter().for_each(|&id| tree.mark(id));
            let actions: Vec<Action> = (0..1 + stream.below(4) as Action).collect();
            let kind = Kind::Decision(Player::ALL[stream.below(2)]);
            tree.expand(path[path.len() - 1], kind, &actions, &[0.25, 0.25, 0.25, 0.25][..actions.len()]);
            let value = crate::game::Values::new(&[stream.unit() as f32, 0.5, -0.5]);
            if tree.sums == 0 {
                tree.ascend(&path, Value(value.each().numbers()[0]))
            } else {
                tree.ascend(&path, value)
            }
        }
        let action = stream.below(tree.children(ROOT).len()) as Action;
        let child = tree.node(ROOT).first_child + action;
        let (mut before, mut after, mut copied) = (Vec::new(), Vec::new(), Vec::new());
        below(&tree, child, &mut before);
        let (known, memory) = (tree.node(child).kind != Kind::New, tree.memory_bytes());
        let copy = tree.subtree(action);
        below(&copy, ROOT, &mut copied);
        tree.keep_subtree(action);
        below(&tree, ROOT, &mut after);
        assert_eq!((&before, &before), (&after, &copied), "seed {seed}");
        assert_eq!((tree.nodes().len(), tree.memory_bytes()), (before.len() + 1, memory));
        assert_eq!(copy.memory_bytes(), Tree::bytes_of(before.len() + 1, tree.sums));
        assert!(known || before.is_empty());
        assert!(tree.nodes().iter().all(|node| node.in_flight == 0));
    }
}

#[test]
fn a_tree_fills_its_memory_and_tells_its_growth_before() {
    for sums in [0, 3] {
        let most = 2_000_003;
        let mut tree = Tree::new(most, sums);
        let mut id = ROOT;
        while tree.has_room(7) {
            let ahead = tree.memory_after(7);
            tree.expand(id, Kind::Chance, &[0, 1, 2, 3, 4, 5, 6], &[0.1; 7]);
            id += 1;
            assert_eq!(tree.memory_bytes(), ahead);
            let held = tree.nodes.capacity() * 32 + tree.beside.capacity() * 8;
            assert_eq!(tree.memory_bytes(), held);
        }
        assert_eq!(tree.memory_bytes(), Tree::bytes_of(most, sums));
        assert!(tree.nodes().len() + 7 > most);
    }
}
