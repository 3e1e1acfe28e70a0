package annotation

import "github.com/openpai/paictl/pkg/scheduler/cell"

// Write returns the annotations of a pod that d binds. It may set d.Placement.Text.
func Write(r *cell.Request, d *cell.Decision) Bound {
	return Bound{}
}

// WritePlacement returns the value of PlacementKey alone, for a pod whose gang lost or regained its
// guarantee.
func WritePlacement(p *cell.Placement, slot int) string { return "" }
