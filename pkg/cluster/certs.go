package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/ssh"
)

const phaseCerts = "certs"

// RenewCertificates renews the certificates of the control plane that expire within the given number of days, on one master after the other, and
// restarts the components that use them. If Options.Limit names machines, only those are renewed. It stops at the first master on which that fails.
func RenewCertificates(ctx context.Context, s *Spec, o Options, days int) error {
	r := newRun(s, o)
	defer r.close()
	nodes, err := r.selected()
	if err != nil {
		return err
	}
	masters := slices.DeleteFunc(slices.Clone(nodes), func(n *Node) bool { return !n.ControlPlane })
	if len(masters) == 0 {
		return hint.Errorf("a kubelet renews its own certificate; name masters, or no machine", "none of these machines runs the control plane")
	}
	slices.SortFunc(masters, byAddress)
	r.started = o.Clock()
	r.emit(Event{Kind: EventRunStarted, Message: "cluster certs renew", Hosts: hostnames(masters), Phases: []string{phaseCerts}})
	if err := r.connect(ctx, s.ControlPlane()); err != nil {
		return err
	}
	held, unlock, err := r.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, n := range masters {
		if r.isAside(n) {
			continue
		}
		if err := r.tell(held, n, phaseCerts, func(ctx context.Context, n *Node) ([]Change, error) { return r.renew(ctx, n, days) }); err != nil {
			return fmt.Errorf("renew the certificates of %s: %w", n.Hostname, err)
		}
		r.emit(Event{Kind: EventHostDone, Host: n.Hostname})
	}
	return r.summary("cluster certs renew", masters, nil)
}

// renew runs the command of the daily timer on one master. The command takes the machine's lock itself.
func (r *run) renew(ctx context.Context, n *Node, days int) ([]Change, error) {
	res, err := r.exec(ctx, n, ssh.Script{Name: "certs/renew", Mutates: true, Timeout: r.opts.StepTimeout, Body: preludeScript + fmt.Sprintf(`
f=$R%s
[ -f "$S/member" ] && [ -f "$f" ] || { echo "it is no master of the cluster yet -> paictl cluster up" >&2; exit 1; }
sh "$f" %d
`, shell.Quote(renewScript), days)})
	var done []Change
	for line := range strings.Lines(string(res.Stdout)) {
		line = strings.TrimSpace(line)
		what, rest, _ := strings.Cut(line, " ")
		switch what {
		case "renewed":
			name, detail, _ := strings.Cut(rest, ": ")
			done = append(done, Change{Action: "renew", Target: "certificate " + name, Detail: detail})
		case "restarted":
			done = append(done, Change{Action: "restart", Target: "static pod " + rest})
		case "":
		default:
			done = append(done, Change{Action: "note", Target: line})
		}
	}
	return done, err
}
