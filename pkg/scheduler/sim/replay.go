package sim

import (
	"context"
	"fmt"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/cell"
	"github.com/openpai/paictl/pkg/strictyaml"
)

// Source is a configuration in HiveD's format and the name that its findings carry.
type Source struct {
	Name string
	Data []byte
}

// ReplayOptions are what a replay needs beside its steps.
type ReplayOptions struct {
	// Config is used by steps "start" that name none; nil is none.
	Config *Source
	// ReadFile reads the configuration that a step names.
	ReadFile func(path string) ([]byte, error)
	// Verify recounts the scheduler's bookkeeping after every step.
	Verify bool
}

// Replay runs the steps of a file in order and hands the answer to each to out as it comes. A step
// that is malformed or fails is answered like any other, and the next is run. Replay itself fails if
// the file is no list, out fails, or the context ends.
func Replay(ctx context.Context, file string, data []byte, o ReplayOptions, out func(*Line) error) error {
	steps, err := readSteps(file, data)
	if err != nil {
		return err
	}
	r := NewStepper(file, o)
	for i := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		line := r.run(&steps[i])
		steps[i].node = nil
		if err := out(line); err != nil {
			return err
		}
	}
	return nil
}

// Stepper runs steps one by one. It is a cluster in which only the scheduler is real: it knows the pods and
// their annotations as an API server would.
type Stepper struct {
	ReplayOptions
	file     string
	steps    int
	config   cell.Config
	core     *cell.Scheduler
	pods     map[string]*replayPod
	accepted []*replayPod // in order of acceptance; nil entries are deleted pods
	gone     int          // nil entries
}

// NewStepper begins with nothing started. file is the name that mistakes in steps carry.
func NewStepper(file string, o ReplayOptions) *Stepper {
	return &Stepper{ReplayOptions: o, file: file, pods: map[string]*replayPod{}}
}

// Step runs one step, written as a map in YAML or JSON.
func (r *Stepper) Step(text []byte) *Line {
	var raw rawStep
	if _, findings := strictyaml.Decode(r.file, text, &raw); findings.Err() != nil {
		r.steps++
		return &Line{Step: r.steps, Result: Failed, Reason: findings.Error()}
	}
	return r.run(&raw)
}

// replayPod is a pod that a step has named.
type replayPod struct {
	podName
	spec    string
	request *cell.Request
	// bind is the last decision that bound it and wasn't accepted yet, notes its annotations.
	bind  *cell.Decision
	notes annotation.Bound
	// slot is its place in its gang's placement, at its index among the accepted, -1 if it isn't.
	slot, at int
}

// run runs one step. A panic below is a bug, and no reason to keep the other answers back.
func (r *Stepper) run(raw *rawStep) (line *Line) {
	r.steps++
	s, err := newStep(r.file, r.steps, raw.node)
	line = &Line{Step: r.steps, Op: s.op}
	defer func() {
		if p := recover(); p != nil {
			line.Result, line.Reason = Failed, panicked(p).Error()
		}
	}()
	if err == nil {
		err = r.do(s, line)
	}
	if err != nil {
		line.Result, line.Reason = Failed, err.Error()
	}
	if r.Verify && r.core != nil {
		if err := r.core.Check(); err != nil {
			line.Violation = err.Error()
		}
	}
	return line
}

// do carries a step out. An error is a mistake in the step's writing.
func (r *Stepper) do(s *step, line *Line) error {
	line.Result = OK
	if s.op == "start" {
		return r.start(s, line)
	}
	if r.core == nil {
		return s.mistake(nil, "op", `begin with the step {op: start, config: FILE}`, "nothing is started")
	}
	switch s.op {
	case "inspect":
		line.Cluster = &Cluster{Groups: groupsOf(r.core.Gangs()), PhysicalCluster: r.core.Physical(), VirtualClusters: r.core.Virtual()}
		return nil
	case "setNodeBad", "setNodeHealthy":
		return r.setNode(s, line)
	}
	p, err := r.pod(s, line)
	if err != nil {
		return err
	}
	switch s.op {
	case "schedule":
		return r.schedule(s, p, line)
	case "addAllocatedPod":
		return r.add(s, p, line)
	case "deleteAllocatedPod":
		r.deleteAllocated(p, line)
	case "deleteUnallocatedPod":
		r.deleteUnallocated(p, line)
	}
	return nil
}

// refuse answers that a step asks for what can't be.
func (l *Line) refuse(format string, args ...any) {
	l.Result, l.Reason = string(cell.Refuse), fmt.Sprintf(format, args...)
}

// setNode changes a node's health.
func (r *Stepper) setNode(s *step, line *Line) error {
	name, err := s.text("node")
	if err != nil {
		return err
	}
	if name == "" {
		return s.mistake(nil, "node", `write the node's name, such as "node: n0"`, "the node is missing")
	}
	r.core.SetNode(name, s.op == "setNodeHealthy")
	if r.core.Devices(name) == nil {
		line.Reason = fmt.Sprintf("the configuration has no node %q; nothing is changed", name)
	}
	return nil
}

// pod returns the pod that a step is about, with the request that it has or gets.
func (r *Stepper) pod(s *step, line *Line) (*replayPod, error) {
	name, err := s.pod()
	if err != nil {
		return nil, err
	}
	line.Pod = name.id
	spec, err := s.document("podSchedulingSpec")
	if err != nil {
		return nil, err
	}
	p := r.pods[name.id]
	if p == nil {
		p = &replayPod{podName: name, at: -1}
		r.pods[name.id] = p
	}
	if spec != "" && (spec != p.spec || name.name != p.name) {
		p.podName, p.spec, p.request = name, spec, nil
	}
	return p, nil
}

// parse reads the pod's annotation; a refusal is in line if it returns false.
func (p *replayPod) parse(line *Line) bool {
	if p.spec == "" {
		line.refuse("pod %s has no podSchedulingSpec", p.id)
		return false
	}
	request, err := annotation.ParseRequest(p.spec, p.name)
	if err != nil {
		line.refuse("%s", err)
		return false
	}
	p.request = request
	return true
}
