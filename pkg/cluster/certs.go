package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/phases"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

const phaseCerts = "certs"

// RenewCertificates renews certificates of the control plane that expire within the given number of days. It restarts the components that use these
// certificates. It processes one master after the other and stops at the first failure. If Options.Limit is set, it processes only the named
// machines.
func RenewCertificates(ctx context.Context, s *engine.Spec, o engine.Options, days int) error {
	r := engine.NewRun(s, o)
	defer r.Close()
	nodes, err := r.Selected()
	if err != nil {
		return err
	}
	masters := slices.DeleteFunc(slices.Clone(nodes), func(n *engine.Node) bool { return !n.ControlPlane })
	if len(masters) == 0 {
		return hint.Errorf("a kubelet renews its own certificate; name masters, or no machine", "none of these machines runs the control plane")
	}
	slices.SortFunc(masters, engine.ByAddress)
	r.Started = o.Clock()
	r.Emit(engine.Event{Kind: engine.EventRunStarted, Message: "cluster certs renew", Hosts: hostnames(masters), Phases: []string{phaseCerts}})
	if err := connect(ctx, r, s.ControlPlane()); err != nil {
		return err
	}
	held, unlock, err := r.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, n := range masters {
		if r.IsAside(n) {
			continue
		}
		if err := tell(held, r, n, phaseCerts, func(ctx context.Context, n *engine.Node) ([]engine.Change, error) { return renew(ctx, r, n, days) }); err != nil {
			return fmt.Errorf("renew the certificates of %s: %w", n.Hostname, err)
		}
		r.Emit(engine.Event{Kind: engine.EventHostDone, Host: n.Hostname})
	}
	return r.Summary("cluster certs renew", masters, nil)
}

// renew runs the program of the daily renewal on one master. The program itself locks the machine.
func renew(ctx context.Context, r *engine.Run, n *engine.Node, days int) ([]engine.Change, error) {
	res, err := r.Exec(ctx, n, ssh.Script{Name: "certs/renew", Mutates: true, Timeout: r.Opts.StepTimeout, Body: engine.PreludeScript + fmt.Sprintf(`
f=$R%s
[ -f "$S/member" ] && [ -f "$f" ] || { echo "it is no master of the cluster yet -> paictl cluster up" >&2; exit 1; }
sh "$f" %d
`, shell.Quote(phases.RenewScript), days)})
	var done []engine.Change
	for line := range strings.Lines(string(res.Stdout)) {
		line = strings.TrimSpace(line)
		what, rest, _ := strings.Cut(line, " ")
		switch what {
		case "renewed":
			name, detail, _ := strings.Cut(rest, ": ")
			done = append(done, engine.Change{Action: "renew", Target: "certificate " + name, Detail: detail})
		case "restarted":
			done = append(done, engine.Change{Action: "restart", Target: "static pod " + rest})
		case "":
		default:
			done = append(done, engine.Change{Action: "note", Target: line})
		}
	}
	return done, err
}
