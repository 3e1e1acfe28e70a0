package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ssh"
)

// Inspection holds the responses of all machines to one read-only query.
type Inspection struct {
	Status   *Status
	Machines map[string]*InspectedMachine // by host name, only machines that were queried
	// Preflight holds the findings of preflight checks on members of the cluster.
	Preflight []preflight.Finding
}

// InspectedMachine is the response of one machine.
type InspectedMachine struct {
	// Err is set if the query failed or if the response can't be parsed. The other fields are then empty.
	Err error
	// QueriedAt and AnsweredAt are the times at which the query began and ended, according to the operator's clock.
	QueriedAt, AnsweredAt time.Time
	Facts                 layout.Facts
	// Settings holds the changes that "cluster up" would make to the operating system: kernel settings and modules, host names, swap, and the time.
	Settings []engine.Change
	// API is up or down on a master, according to the master's own API server, and "" on other machines. APIMessage is the error if API is down.
	API, APIMessage string
	// Etcd is the state of etcd according to this machine's etcd. It is nil if the machine has no etcd, or if its etcd doesn't respond.
	Etcd *EtcdView
	// Broken maps the sections of the script that failed to their exit status. The sections are facts, base, more, etcd and status.
	Broken map[string]string
	// More holds the lines that the caller's script printed. Each line is split into fields.
	More [][]string

	sections map[string]answer.Answer
}

// EtcdView is the state of etcd according to one of its members.
type EtcdView struct {
	Members []EtcdMember
	// Quorum reports whether a majority of the members agreed on the list. Otherwise Members is the last list that this member has stored.
	Quorum bool
	// Status is the member's own status as JSON. Alarms holds the active alarms.
	Status, Alarms []byte
}

// EtcdMember is a member of etcd. A member that was added but hasn't started yet has no name.
type EtcdMember struct {
	Name     string
	PeerURLs []string
	Learner  bool
}

// Inspect queries every machine once. It reads the status, the facts, and the differences between the operating system and the configuration. It also
// runs the script that more returns for the machine. The result also contains machines that don't respond.
func Inspect(ctx context.Context, s *engine.Spec, o engine.Options, more func(*engine.Node) string) (*Inspection, error) {
	o.DryRun = true
	r := engine.NewRun(s, o)
	defer r.Close()
	nodes, err := r.Selected()
	if err != nil {
		return nil, err
	}
	out := &Inspection{Machines: map[string]*InspectedMachine{}}
	answers := map[*engine.Node]answer.Answer{}
	var mu sync.Mutex
	errs := r.Each(ctx, nodes, func(ctx context.Context, n *engine.Node) error {
		one, status, err := lookAt(ctx, r, n, more(n))
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		out.Machines[n.Hostname], answers[n] = one, status
		return nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for n, err := range errs {
		out.Machines[n.Hostname] = &InspectedMachine{Err: err}
	}
	out.Preflight = out.check(s)
	out.Status = newStatus(s, nodes, answers, errs, o.Clock())
	return out, nil
}

func (l *Inspection) check(s *engine.Spec) []preflight.Finding {
	d := s.Fresh()
	c := phases.CheckedCluster(d, nil)
	var hosts []*preflight.Host
	for i, n := range s.Nodes {
		m := l.Machines[n.Hostname]
		if m == nil || m.Err != nil {
			continue
		}
		h, broken := preflight.Read(c, c.Nodes[i], m.sections)
		if broken != nil {
			m.Broken[phasePreflight] = broken.Message
			continue
		}
		h.Selected = h.Joined
		h.QueriedAt, h.Answered = m.QueriedAt, m.AnsweredAt
		phases.AddPhaseFacts(keepingDrivers(s).Fresh(), h, n, m.sections)
		hosts = append(hosts, h)
	}
	return preflight.Examine(c, hosts)
}

func lookAt(ctx context.Context, r *engine.Run, n *engine.Node, more string) (*InspectedMachine, answer.Answer, error) {
	if err := r.Dial(ctx, n); err != nil {
		return nil, answer.Answer{}, err
	}
	settings, err := phases.Named(r.Want, phases.PhaseBase).Detect(n)
	if err != nil {
		return nil, answer.Answer{}, err
	}
	driver, err := phases.Named(keepingDrivers(r.Spec).Fresh(), phases.PhaseDriver).Detect(n)
	if err != nil {
		return nil, answer.Answer{}, err
	}
	out := &InspectedMachine{QueriedAt: r.Opts.Clock(), Broken: map[string]string{}}
	res, err := r.Exec(ctx, n, ssh.Script{Name: "look", Timeout: r.Opts.StepTimeout, Body: lookProgram(r.Want, n, settings, driver, more)})
	if err != nil {
		return nil, answer.Answer{}, err
	}
	out.AnsweredAt = r.Opts.Clock()
	sections, err := answer.Sections(res.Stdout)
	if err != nil {
		return nil, answer.Answer{}, fmt.Errorf("look at %s: %w", n.Hostname, err)
	}
	if out.Facts, err = layout.ParseFacts(sections["facts"].Raw); err != nil {
		return nil, answer.Answer{}, hint.Wrap(fmt.Errorf("the answer of %s is not readable: %w", n.Hostname, err),
			"log in there and check what the shell prints when it starts; it must print nothing to standard output")
	}
	for name, a := range sections {
		if a.Failed != "" {
			out.Broken[name] = a.Failed
		}
	}
	world := &engine.World{Want: r.Want, Facts: map[string]*engine.Facts{n.Hostname: {Sections: sections}}}
	if out.Broken[phases.PhaseBase] == "" { // otherwise all settings would seem to be missing
		if out.Settings, err = phases.Named(r.Want, phases.PhaseBase).Diff(n, world); err != nil {
			return nil, answer.Answer{}, err
		}
	}
	for i := range out.Settings {
		out.Settings[i].Host, out.Settings[i].Phase = n.Hostname, phases.PhaseBase
	}
	if f, asked := sections["status"].Row("api"); asked && len(f) > 1 {
		out.API, out.APIMessage = f[0], f[1]
	}
	out.Etcd = readEtcd(sections["etcd"])
	out.More, out.sections = sections["more"].Rows, sections
	return out, sections["status"], nil
}

// keepingDrivers returns a copy of the spec without the installation of drivers. Checks then examine the driver that the machine already has.
func keepingDrivers(s *engine.Spec) *engine.Spec {
	out, conf := *s, *s.Config
	if d := &conf.Kubernetes.Kubernetes.GPUDriver; phases.Driver(s).Policy == config.GPUDriverInstall {
		d.Policy = config.GPUDriverKeep
	}
	out.Config = &conf
	return &out
}

func lookProgram(d *engine.Desired, n *engine.Node, settings, driver, more string) string {
	// The facts include the machine's clock, so they must come first.
	sections := []engine.Section{
		{Name: "facts", Body: layout.DiscoverScript()},
		{Name: phasePreflight, Body: preflight.Probe(phases.CheckedCluster(d, nil), phases.CheckedNode(n))},
		{Name: "journal", Body: "d_journal"},
		{Name: phases.PhaseBase, Body: settings},
		{Name: phases.PhaseDriver, Body: driver},
		{Name: "more", Body: "set +e\n" + more},
	}
	var etcd string
	if n.ControlPlane {
		etcd = engine.EtcdScript
		sections = append(sections, engine.Section{Name: "etcd", Body: "e_look"})
	}
	sections = append(sections, engine.Section{Name: "status", Body: statusCall(d.Spec, n, false)})
	body := engine.DetectProgram(sections)
	return strings.Replace(body, engine.DetectScript, engine.DetectScript+statusScript+etcd, 1)
}

func readEtcd(a answer.Answer) *EtcdView {
	v := engine.ReadMembers(a)
	if v == nil {
		return nil
	}
	out := &EtcdView{Quorum: v.Quorum, Status: engine.Decoded(a.Value("etcdstatus")), Alarms: engine.Decoded(a.Value("alarms"))}
	for _, m := range v.Members {
		out.Members = append(out.Members, EtcdMember(m))
	}
	return out
}

// Repair makes changes that Inspect has found. The keys of changes and of the returned errors are host names.
func Repair(ctx context.Context, s *engine.Spec, o engine.Options, changes map[string][]engine.Change) map[string]error {
	p := phases.Named(s.Fresh(), phases.PhaseBase)
	return onMachines(ctx, s, o, changes, func(ctx context.Context, r *engine.Run, n *engine.Node) error {
		return p.Apply(ctx, r, n, changes[n.Hostname])
	})
}

// RunOn runs scripts that change machines. The keys of scripts and of the returned errors are host names. Each script runs under its machine's lock.
// The machine's journal contains name.
func RunOn(ctx context.Context, s *engine.Spec, o engine.Options, name string, scripts map[string]string) map[string]error {
	return onMachines(ctx, s, o, scripts, func(ctx context.Context, r *engine.Run, n *engine.Node) error {
		_, err := r.Script(ctx, n, name, "fix", scripts[n.Hostname])
		return err
	})
}

func onMachines[T any](ctx context.Context, s *engine.Spec, o engine.Options, on map[string]T, do func(context.Context, *engine.Run, *engine.Node) error) map[string]error {
	r := engine.NewRun(s, o)
	defer r.Close()
	nodes := slices.DeleteFunc(slices.Clone(s.Nodes), func(n *engine.Node) bool {
		_, named := on[n.Hostname]
		return !named
	})
	out := map[string]error{}
	for n, err := range r.Each(ctx, nodes, func(ctx context.Context, n *engine.Node) error {
		if err := r.Dial(ctx, n); err != nil {
			return err
		}
		return do(ctx, r, n)
	}) {
		out[n.Hostname] = err
	}
	return out
}
