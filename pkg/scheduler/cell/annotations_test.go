package cell_test

import (
	"testing"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// TestRandomStepsGoOnFromAnnotations stores the state for restarts in real annotations.
func TestRandomStepsGoOnFromAnnotations(t *testing.T) {
	cell.WalkWith(t, 60, func() cell.Persist {
		kept := map[*cell.Request]map[string]string{}
		return func(r *cell.Request, p *cell.Placement, slot int, changed bool) (*cell.Placement, int, error) {
			if changed && kept[r] != nil && p.Moves == 0 {
				kept[r][annotation.PlacementKey] = annotation.WritePlacement(p, slot)
			} else {
				at := &p.Pods[slot]
				b := annotation.Write(r, &cell.Decision{Result: cell.Bind, Node: at.Node, Indices: at.Indices, Chain: p.Chain, Placement: p, Slot: slot})
				kept[r] = map[string]string{annotation.IsolationKey: b.Isolation, annotation.BindInfoKey: b.BindInfo, annotation.PlacementKey: b.Placement}
			}
			return annotation.ReadBound(r, kept[r])
		}
	})
}
