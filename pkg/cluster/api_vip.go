package cluster

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
	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
	"github.com/openpai/paictl/pkg/hint"
)

// apiVIP gives the API a virtual address for people and programs outside the cluster. A program runs on each master, and the holder of a lease sets
// the address. The phase comes last, when the masters have joined and their certificates name the address.
type apiVIP struct{ want *desired }

const (
	phaseAPIVIP = preflight.CheckVIP
	vipProgram  = "pai-api-vip"
)

//go:embed files/api-vip.yaml.tmpl
var vipTemplate string

//go:embed scripts/api_vip.sh
var vipScript string

func (*apiVIP) name() string         { return phaseAPIVIP }
func (*apiVIP) traits() traits       { return traits{upgrade: upgradeAfter} }
func (*apiVIP) applies(n *Node) bool { return n.ControlPlane }
func (*apiVIP) verify(*Node) string  { return "" } // apply checks it
func (p *apiVIP) address() string    { return p.want.Config.Kubernetes.Kubernetes.APIVIP }
func (p *apiVIP) port() int          { return p.want.Config.Kubernetes.Kubernetes.APIServerPort }
func (p *apiVIP) call(f string) string {
	return fmt.Sprintf("%s %s %d\n", f, shell.Quote(p.address()), p.port())
}

// waits for the image, the certificate and the labels of each master.
func (p *apiVIP) waits(n *Node, _ *plan) []step {
	out := []step{{host: n.Hostname, phase: phaseInit, must: true}, {host: n.Hostname, phase: phaseLabels}}
	for _, m := range p.want.ControlPlane() {
		out = append(out, step{host: m.Hostname, phase: phaseImages}, step{host: m.Hostname, phase: phaseInit}, step{host: m.Hostname, phase: phaseJoin})
	}
	return out
}

func (p *apiVIP) detect(n *Node) (string, error) {
	return p.want.selfAPI(n) + vipScript + p.call("d_vip"), nil
}

func (p *apiVIP) diff(n *Node, w *world) ([]Change, error) {
	if n != w.leader || !w.founding() && !w.healthy(n) {
		return nil, nil
	}
	has, there := w.vip()
	// As with the kubelets' certificates, only a run on all machines and phases moves the cluster, and an upgrade doesn't: some masters may not have
	// a certificate for another address yet, or not the image.
	moves := w.whole && !p.want.upgrading
	if !moves && has.address != p.address() {
		return nil, nil
	}
	if p.address() == "" {
		if there {
			return []Change{{Action: "remove", Target: vipProgram, Detail: "the API no longer has a virtual address"}}, nil
		}
		return nil, nil
	}
	_, sum, err := p.manifest()
	if err != nil {
		return nil, err
	}
	if !moves && !p.want.upgrading && has.hash != sum {
		return nil, nil
	}
	a := w.cluster(n)
	answers := p.want.vipSeen(vipHolder(a), func(m *Node) answer.Answer { return w.of(m, phaseAPIVIP) })
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
	return []Change{{Action: "run", Target: vipProgram, Detail: detail}}, nil
}

// appliedVIP holds the state of the virtual address in the cluster.
type appliedVIP struct{ hash, address string }

// vip returns the cluster's state of the virtual address, as the leader reported it.
func (w *world) vip() (appliedVIP, bool) {
	if w.founding() {
		return appliedVIP{}, false
	}
	row, there := w.cluster(w.leader).Row("vip")
	if !there || len(row) < 2 {
		return appliedVIP{}, there
	}
	return appliedVIP{hash: row[0], address: row[1]}, true
}

func (p *apiVIP) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	body := p.want.selfAPI(n) + vipScript
	if cs[0].Action == "remove" {
		body += "v_gone\n"
	} else {
		manifest, _, err := p.manifest()
		if err != nil {
			return err
		}
		body += heredoc("v_apply", manifest) + p.call("v_works")
	}
	res, err := r.script(ctx, n, phaseAPIVIP, "apply", body)
	if err != nil || cs[0].Action == "remove" {
		return err
	}
	a, err := answer.Parse(res.Stdout)
	if err != nil {
		return err
	}
	return p.reached(ctx, r, cmp.Or(vipHolder(a), n.Hostname))
}

// reached asks a machine that doesn't have the address. If only the holder reaches it, the network may still drop it.
func (p *apiVIP) reached(ctx context.Context, r *run, holder string) error {
	workers := slices.DeleteFunc(slices.Clone(r.spec.Nodes), func(n *Node) bool { return n.ControlPlane })
	for _, n := range r.alive(slices.Concat(r.spec.ControlPlane(), workers)) {
		if n.Hostname == holder {
			continue
		}
		res, err := r.read(ctx, n, phaseAPIVIP, "reach", vipScript+p.call("v_reach"))
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

// vipHolder returns the node that holds the lease according to an answer, or "" if the lease has no holder.
func vipHolder(a answer.Answer) string { return unquoted(a.Value("vip-holder")) }

// vipSeen reports whether the API answers at its virtual address according to the masters. It prefers the result of a master that isn't
// the holder, if one was asked.
func (s *Spec) vipSeen(holder string, says func(*Node) answer.Answer) bool {
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

// vipAnswers asks the connected masters.
func (r *run) vipAnswers(ctx context.Context) (bool, error) {
	p := &apiVIP{want: r.want}
	var mu sync.Mutex
	said, holder := map[*Node]answer.Answer{}, ""
	errs := r.each(ctx, r.alive(r.spec.ControlPlane()), func(ctx context.Context, n *Node) error {
		res, err := r.read(ctx, n, phaseAPIVIP, "look", r.spec.selfAPI(n)+vipScript+p.call("v_look"))
		if err != nil {
			return err
		}
		a, err := answer.Parse(res.Stdout)
		mu.Lock()
		defer mu.Unlock()
		said[n], holder = a, cmp.Or(holder, vipHolder(a))
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
	return r.spec.vipSeen(holder, func(n *Node) answer.Answer { return said[n] }), nil
}

// manifest returns the manifest to apply, and the hash that identifies it.
func (p *apiVIP) manifest() (manifest []byte, sum string, err error) {
	image, err := p.want.image(vipProgram)
	if err != nil {
		return nil, "", err
	}
	return hashed(vipProgram, vipTemplate, map[string]string{"Image": p.want.imageRef(image), "APIPort": strconv.Itoa(p.port()), "Address": p.address()})
}

// claimed returns findings against a virtual address that the cluster doesn't have yet: it must be free.
func (w *world) claimed() []preflight.Finding {
	vip := w.want.Config.Kubernetes.Kubernetes.APIVIP
	if has, _ := w.vip(); vip == "" || has.address == vip || !w.founding() && !w.healthy(w.leader) {
		return nil
	}
	const remedy = "set api-vip in kubernetes-configuration.yaml to a free address of the masters' network"
	by := map[string][]string{} // the MAC address that answers, and the masters that saw it
	var out []preflight.Finding
	for _, n := range w.want.ControlPlane() {
		a := w.of(n, phaseAPIVIP)
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
	if len(out) > 0 { // the other masters have seen the same machine
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
