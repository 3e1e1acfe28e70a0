package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/cell"
)

// Source is a configuration in HiveD's format. Findings contain its name.
type Source struct {
	Name string
	Data []byte
}

// ReplayOptions holds the inputs of a replay other than its steps.
type ReplayOptions struct {
	// Config is the configuration for start steps without a configuration. It may be nil.
	Config *Source
	// ReadFile reads a configuration file for a step.
	ReadFile func(path string) ([]byte, error)
	// Verify checks the scheduler's state after every step.
	Verify bool
}

// Replay runs the steps of a file in order, and passes the answer to each step to out at once. If a step is invalid or fails,
// its answer contains the error, and Replay continues with the next step. Replay returns an error only if the file isn't a
// list, if out fails, or if the context ends.
func Replay(ctx context.Context, file string, data []byte, o ReplayOptions, out func(*Line) error) error {
	var steps []step
	if _, findings := strictyaml.Decode(file, yamlOfJSON(data), &steps); findings.Err() != nil {
		return advise(findings, `write a list of steps, one to a line, such as "- {op: start, config: FILE}"`)
	}
	r := NewStepper(file, o)
	for i := range steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := out(r.answer(&steps[i])); err != nil {
			return err
		}
	}
	return nil
}

// advise adds a remedy to findings about a whole text, because the parser has no remedy for them. If the text isn't YAML,
// advise keeps the parser's remedy.
func advise(fs strictyaml.Findings, remedy string) strictyaml.Findings {
	for i := range fs {
		if fs[i].Field == "" && (fs[i].Remedy == "" || fs[i].Rule == "yaml/type") {
			fs[i].Remedy = remedy
		}
	}
	return fs
}

// Stepper executes individual steps. It simulates a cluster in which only the scheduler is real. Like an API server, it stores
// the pods and their annotations.
type Stepper struct {
	ReplayOptions
	file     string
	steps    int
	config   cell.Config
	core     *cell.Scheduler
	pods     map[string]*replayPod
	accepted []*replayPod // in order of acceptance; nil entries were deleted pods
	gone     int          // the number of nil entries in accepted
}

// NewStepper returns a Stepper without a scheduler. file is the file name in errors about steps.
func NewStepper(file string, o ReplayOptions) *Stepper {
	return &Stepper{ReplayOptions: o, file: file, pods: map[string]*replayPod{}}
}

// Step runs one step. text is a map in YAML or JSON.
func (r *Stepper) Step(text []byte) *Line {
	s := step{line: 1, column: 1}
	if _, findings := strictyaml.Decode(r.file, yamlOfJSON(text), &s); findings.Err() != nil {
		s.findings = findings
	}
	return r.answer(&s)
}

type replayPod struct {
	podName
	spec    string
	request *cell.Request
	// bind is the last decision that bound the pod, if the bind wasn't accepted yet. notes are the annotations of this
	// decision.
	bind  *cell.Decision
	notes annotation.Bound
	// slot is the pod's index in its gang's placement. at is the pod's index in accepted, or -1.
	slot, at int
}

// answer executes one step and returns the answer. A panic in a step is a bug, but the next steps still run.
func (r *Stepper) answer(s *step) (line *Line) {
	r.steps++
	line = &Line{Step: r.steps, Op: s.op, Result: OK}
	defer func() {
		if p := recover(); p != nil {
			line.Result, line.Reason = Failed, panicked(p).Error()
		}
	}()
	if len(s.findings) > 0 {
		line.Result, line.Reason = Failed, reasons(advise(s.findings, `write a step, such as {op: schedule, pod: p1}`))
	} else if err := r.do(s, line); err != nil {
		line.Result, line.Reason = Failed, fmt.Sprintf("%s:%d:%d: %v", r.file, s.line, s.column, err)
	}
	if r.Verify && r.core != nil {
		if err := r.core.Check(); err != nil {
			line.Violation = err.Error()
		}
	}
	return line
}

func (r *Stepper) do(s *step, line *Line) error {
	if s.operation == nil {
		return s.unknown()
	}
	if r.core == nil && s.op != "start" {
		return errors.New("op: nothing is started; begin with the step {op: start, config: FILE}")
	}
	return s.run(r, line)
}

// run adds the state of the whole cluster to the answer.
func (*inspectStep) run(r *Stepper, line *Line) error {
	line.Cluster = &Cluster{Groups: groupsOf(r.core.Gangs()), PhysicalCluster: r.core.Physical(), VirtualClusters: r.core.Virtual()}
	return nil
}

func (s *nodeStep) run(r *Stepper, line *Line) error {
	if s.Node == "" {
		return errors.New(`node: the node is missing; write its name, such as "node: n0"`)
	}
	r.core.SetNode(s.Node, s.Op == "setNodeHealthy")
	if r.core.Devices(s.Node) == nil {
		line.Reason = fmt.Sprintf("the configuration has no node %q; nothing is changed", s.Node)
	}
	return nil
}

// refuse sets the answer's result to Refuse, because the step's request is impossible.
func (l *Line) refuse(format string, args ...any) {
	l.Result, l.Reason = string(cell.Refuse), fmt.Sprintf(format, args...)
}

// pod returns the pod of a step. It sets the pod's request if the step contains a request.
func (r *Stepper) pod(name podName, spec string, line *Line) (*replayPod, error) {
	if name.id == "" {
		return nil, errors.New(`pod: the pod is missing; write an id, such as "pod: p1"`)
	}
	line.Pod = name.id
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

// parse reads the pod's annotation. After a failure, line contains the reason.
func (p *replayPod) parse(line *Line) bool {
	if p.spec == "" {
		line.refuse("pod %s has no podSchedulingSpec; write it in this step, or in one before, such as podSchedulingSpec: {virtualCluster: A, leafCellNumber: 1}", p.id)
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
