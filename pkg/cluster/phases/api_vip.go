package phases

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
)

// apiVIP assigns a virtual address for people and programs outside the cluster to the API. A program runs on each master. The instance that holds a
// lease sets the address. The phase runs last, because all masters must have joined and their certificates must contain the address.
type apiVIP struct{ want *engine.Desired }

// PhaseAPIVIP is the name of the phase that sets up the API's virtual address.
const PhaseAPIVIP = preflight.CheckVIP

//go:embed files/api-vip.yaml.tmpl
var vipTemplate string

//go:embed scripts/api_vip.sh
var vipScript string

func (*apiVIP) Name() string                { return PhaseAPIVIP }
func (*apiVIP) Traits() engine.Traits       { return engine.Traits{Upgrade: engine.UpgradeAfter} }
func (*apiVIP) Applies(n *engine.Node) bool { return n.ControlPlane }
func (*apiVIP) Verify(*engine.Node) string  { return "" } // Apply checks the address
func (p *apiVIP) address() string           { return p.want.Config.Kubernetes.Kubernetes.APIVIP }
func (p *apiVIP) port() int                 { return p.want.Config.Kubernetes.Kubernetes.APIServerPort }
func (p *apiVIP) call(f string) string {
	return fmt.Sprintf("%s %s %d\n", f, shell.Quote(p.address()), p.port())
}

// Waits returns the steps that install the image, the certificate and the labels on the masters.
func (p *apiVIP) Waits(n *engine.Node, _ *engine.Plan) []engine.Step {
	out := []engine.Step{{Host: n.Hostname, Phase: engine.PhaseInit, Must: true}, {Host: n.Hostname, Phase: PhaseLabels}}
	for _, m := range p.want.ControlPlane() {
		out = append(out, engine.Step{Host: m.Hostname, Phase: PhaseImages}, engine.Step{Host: m.Hostname, Phase: engine.PhaseInit}, engine.Step{Host: m.Hostname, Phase: engine.PhaseJoin})
	}
	return out
}

func (p *apiVIP) Detect(n *engine.Node) (string, error) {
	return p.want.SelfAPI(n) + vipScript + p.call("d_vip"), nil
}

func (p *apiVIP) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	if n != w.Leader || !w.Founding() && !w.Healthy(n) {
		return nil, nil
	}
	has, there := foundVIP(w)
	// Only a run on all machines and phases that isn't an upgrade changes the address. In other runs, some masters may not yet have the image, or a
	// certificate for the new address.
	moves := w.Whole && !p.want.Upgrading
	if !moves && has.address != p.address() {
		return nil, nil
	}
	if p.address() == "" {
		if there {
			return []engine.Change{{Action: "remove", Target: engine.VIPProgram, Detail: "the API no longer has a virtual address"}}, nil
		}
		return nil, nil
	}
	_, sum, err := p.Manifest()
	if err != nil {
		return nil, err
	}
	if !moves && !p.want.Upgrading && has.hash != sum {
		return nil, nil
	}
	a := w.Cluster(n)
	answers := VIPReachable(p.want.Spec, VIPHolder(a), func(m *engine.Node) answer.Answer { return w.Of(m, PhaseAPIVIP) })
	if there && has.hash == sum && a.Value("lease") == "yes" && answers {
		return nil, nil
	}
	detail := "the API's virtual address " + p.address()
	switch {
	case there && has.address != p.address():
		detail += ", no longer " + has.address
	case there && !answers:
		detail += ", at which the API doesn't answer"
	}
	return []engine.Change{{Action: "run", Target: engine.VIPProgram, Detail: detail}}, nil
}

type appliedVIP struct{ hash, address string }

// foundVIP returns the manifest of the virtual address in the cluster, and whether the manifest exists.
func foundVIP(w *engine.World) (appliedVIP, bool) {
	if w.Founding() {
		return appliedVIP{}, false
	}
	row, there := w.Cluster(w.Leader).Row("vip")
	if !there || len(row) < 2 {
		return appliedVIP{}, there
	}
	return appliedVIP{hash: row[0], address: row[1]}, true
}

func (p *apiVIP) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	body := p.want.SelfAPI(n) + vipScript
	if cs[0].Action == "remove" {
		body += "v_gone\n"
	} else {
		manifest, _, err := p.Manifest()
		if err != nil {
			return err
		}
		body += engine.Heredoc("v_apply", manifest) + p.call("v_works")
	}
	res, err := r.Script(ctx, n, PhaseAPIVIP, "apply", body)
	if err != nil || cs[0].Action == "remove" {
		return err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return err
	}
	return p.reached(ctx, r, cmp.Or(VIPHolder(a), n.Hostname))
}

// reached returns an error unless the API responds at the virtual address to a machine that doesn't hold the address. If only the holder can reach
// the address, the network may drop its packets.
func (p *apiVIP) reached(ctx context.Context, r *engine.Run, holder string) error {
	workers := slices.DeleteFunc(slices.Clone(r.Spec.Nodes), func(n *engine.Node) bool { return n.ControlPlane })
	for _, n := range r.Working(slices.Concat(r.Spec.ControlPlane(), workers)) {
		if n.Hostname == holder {
			continue
		}
		res, err := r.Read(ctx, n, PhaseAPIVIP, "reach", vipScript+p.call("v_reach"))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			continue // the phases of n report the error
		}
		a, err := answer.Parse(res.Stdout)
		if err != nil {
			return err
		}
		switch a.Value("reach") {
		case "yes":
			return nil
		case "no":
			return hint.Errorf("see whether the network lets the masters' ARP through (security of ports at switches, clouds); or remove api-vip from kubernetes-configuration.yaml",
				"the API answers at its virtual address %s at %s, which has it, but not from %s: %s", p.address(), holder, n.Hostname, a.Value("reach", "no"))
		}
	}
	return nil
}

// VIPHolder returns the holder of the lease in a machine's output, or "" if the lease has no holder.
func VIPHolder(a answer.Answer) string { return engine.Unquoted(a.Value("vip-holder")) }

// VIPReachable reports whether masters can reach the API at its virtual address. The result of the holder counts only if no other master was queried.
func VIPReachable(s *engine.Spec, holder string, says func(*engine.Node) answer.Answer) bool {
	byHolder, asked := false, false
	for _, n := range s.ControlPlane() {
		switch said := says(n).Value("vip-answers"); {
		case said == "":
		case n.Hostname == holder:
			byHolder = said == "yes"
		case said == "yes":
			return true
		default:
			asked = true
		}
	}
	return byHolder && !asked
}

// VIPAnswers queries the connected masters. It reports whether the API responds at its virtual address.
func VIPAnswers(ctx context.Context, r *engine.Run) (bool, error) {
	p := &apiVIP{want: r.Want}
	var mu sync.Mutex
	said, holder := map[*engine.Node]answer.Answer{}, ""
	errs := r.Each(ctx, r.Working(r.Spec.ControlPlane()), func(ctx context.Context, n *engine.Node) error {
		res, err := r.Read(ctx, n, PhaseAPIVIP, "look", r.Spec.SelfAPI(n)+vipScript+p.call("v_look"))
		if err != nil {
			return err
		}
		a, err := answer.Parse(res.Stdout)
		mu.Lock()
		defer mu.Unlock()
		said[n], holder = a, cmp.Or(holder, VIPHolder(a))
		return err
	})
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if len(said) == 0 {
		for _, err := range errs {
			return false, err
		}
	}
	return VIPReachable(r.Spec, holder, func(n *engine.Node) answer.Answer { return said[n] }), nil
}

// Manifest returns the manifest to apply and a hash of the manifest.
func (p *apiVIP) Manifest() (manifest []byte, sum string, err error) {
	image, err := p.want.Image(engine.VIPProgram)
	if err != nil {
		return nil, "", err
	}
	return hashed(engine.VIPProgram, vipTemplate, map[string]string{"Image": ImageRef(p.want.Spec, image), "APIPort": strconv.Itoa(p.port()), "Address": p.address()})
}

// AddressConflicts returns an error finding for each machine that already has the virtual address. It only checks an address that the cluster hasn't used yet.
func AddressConflicts(w *engine.World) []preflight.Finding {
	vip := w.Want.Config.Kubernetes.Kubernetes.APIVIP
	if has, _ := foundVIP(w); vip == "" || has.address == vip || !w.Founding() && !w.Healthy(w.Leader) {
		return nil
	}
	const remedy = "set api-vip in kubernetes-configuration.yaml to a free address of the masters' network"
	by := map[string][]string{} // the masters that got an ARP reply, by the MAC address in the reply
	var out []preflight.Finding
	for _, n := range w.Want.ControlPlane() {
		a := w.Of(n, PhaseAPIVIP)
		if a.Value("here") == "yes" {
			out = append(out, preflight.Finding{
				Host: n.Hostname, Check: preflight.CheckVIP, Severity: preflight.SeverityError,
				Message: fmt.Sprintf("api-vip %s is an address that the machine has by itself", vip), Remedy: remedy + ", or take it from the machine",
			})
		}
		if mac := a.Value("claimed"); mac != "" {
			by[mac] = append(by[mac], n.Hostname)
		}
	}
	if len(out) > 0 { // the replies that the other masters saw came from the same machine
		return out
	}
	for mac, seen := range by {
		out = append(out, preflight.Finding{
			Host: seen[0], Check: preflight.CheckVIP, Severity: preflight.SeverityError,
			Message: fmt.Sprintf("another machine of the network answers at api-vip %s: its hardware address is %s, seen from %s", vip, mac, strings.Join(seen, ", ")),
			Remedy:  remedy + "; or, if a machine that was removed from this cluster has it, switch that machine off",
		})
	}
	slices.SortFunc(out, func(a, b preflight.Finding) int { return strings.Compare(a.Message, b.Message) })
	return out
}
