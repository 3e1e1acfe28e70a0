package sim

import (
	"fmt"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// codec is how a pod's request comes to the core, and how the core's decision comes to the pod.
type codec interface {
	read(j *job, p *pod) (*cell.Request, error)
	write(r *cell.Request, d *cell.Decision)
}

// textCodec reads and writes annotations, afresh at every call.
type textCodec struct{}

func (textCodec) read(_ *job, p *pod) (*cell.Request, error) {
	return annotation.ParseRequest(p.text, p.name)
}

func (textCodec) write(r *cell.Request, d *cell.Decision) { annotation.Write(r, d) }

// directCodec hands the request over as it is.
type directCodec struct{}

func (directCodec) read(j *job, p *pod) (*cell.Request, error) {
	if p.request != nil {
		return p.request, nil
	}
	return &cell.Request{VirtualCluster: j.VC, Priority: j.Priority, Gang: fmt.Sprintf("default/job-%d", j.ID),
		Root: cell.Group{Pods: []cell.PodSet{{Count: j.Pods, Cells: j.GPUsPerPod}}}}, nil
}

func (directCodec) write(*cell.Request, *cell.Decision) {}
