package cluster

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/preflight"
	"github.com/openpai/paictl/pkg/cluster/shell"
)

// apiVIP gives the API a virtual address for people and programs outside of the cluster: a program on each master, of which the holder of a lease sets it.
// It comes last, when the masters have joined, and their certificates name the address.
type apiVIP struct{ spec *Spec }

const (
	phaseAPIVIP = preflight.CheckVIP
	vipProgram  = "pai-api-vip"
)

//go:embed files/api-vip.yaml.tmpl
var vipTemplate string

//go:embed scripts/api_vip.sh
var vipScript string

func (*apiVIP) name() string          { return phaseAPIVIP }
func (*apiVIP) applies(n *Node) bool  { return n.ControlPlane }
func (*apiVIP) verify(n *Node) string { return "" } // apply does
func (p *apiVIP) address() string     { return p.spec.Config.Kubernetes.Kubernetes.APIVIP }
func (p *apiVIP) port() int           { return p.spec.Config.Kubernetes.Kubernetes.APIServerPort }
func (p *apiVIP) call(f string) string {
	return fmt.Sprintf("%s %s %d\n", f, shell.Quote(p.address()), p.port())
}

// waits: until each master has its image, its certificate and its labels.
func (p *apiVIP) waits(n *Node, _ *plan) []step {
	out := []step{{host: n.Hostname, phase: phaseInit, must: true}, {host: n.Hostname, phase: phaseLabels}}
	for _, m := range p.spec.ControlPlane() {
		out = append(out, step{host: m.Hostname, phase: phaseImages}, step{host: m.Hostname, phase: phaseInit}, step{host: m.Hostname, phase: phaseJoin})
	}
	return out
}

func (p *apiVIP) detect(n *Node) (string, error) {
	return selfAPI(p.spec, n) + vipScript + p.call("d_vip"), nil
}

func (p *apiVIP) diff(n *Node, w *world) ([]Change, error) {
	if n != w.leader || !w.founding() && !w.healthy(n) {
		return nil, nil
	}
	has, there := w.vip()
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
	a := w.of(n, phaseAPIVIP)
	answers := a.Value("answers") == "yes"
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

// appliedVIP is what the cluster has of a virtual address.
type appliedVIP struct{ hash, address string }

// vip says what the cluster has, by the leader.
func (w *world) vip() (appliedVIP, bool) {
	if w.founding() {
		return appliedVIP{}, false
	}
	row, there := w.of(w.leader, phaseAPIVIP).Row("vip")
	if !there || len(row) < 2 {
		return appliedVIP{}, there
	}
	return appliedVIP{hash: row[0], address: row[1]}, true
}

func (p *apiVIP) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	body := selfAPI(p.spec, n) + vipScript
	if cs[0].Action == "remove" {
		body += "v_gone\n"
	} else {
		manifest, _, err := p.manifest()
		if err != nil {
			return err
		}
		body += heredoc("v_apply", manifest) + p.call("v_works")
	}
	_, err := r.script(ctx, n, phaseAPIVIP, "apply", body)
	return err
}

// manifest is what is applied, and the hash by which it is known.
func (p *apiVIP) manifest() (manifest []byte, sum string, err error) {
	image, err := p.spec.image(vipProgram)
	if err != nil {
		return nil, "", err
	}
	return hashed(vipProgram, vipTemplate, map[string]string{"Image": p.spec.imageRef(image), "APIPort": strconv.Itoa(p.port()), "Address": p.address()})
}

// claimed are findings that speak against a virtual address which the cluster doesn't have yet: it must be free.
func (w *world) claimed() []preflight.Finding {
	vip := w.spec.Config.Kubernetes.Kubernetes.APIVIP
	if has, _ := w.vip(); vip == "" || has.address == vip || !w.founding() && !w.healthy(w.leader) {
		return nil
	}
	const remedy = "set api-vip in kubernetes-configuration.yaml to a free address of the masters' network"
	by := map[string][]string{} // who answers, the masters that saw it
	var out []preflight.Finding
	for _, n := range w.spec.ControlPlane() {
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
	if len(out) > 0 { // the others have seen that machine
		return out
	}
	for mac, seen := range by {
		out = append(out, preflight.Finding{
			Host: seen[0], Check: preflight.CheckVIP, Severity: preflight.SeverityError,
			Message: fmt.Sprintf("another machine of the network answers at api-vip %s: its hardware address is %s, seen from %s", vip, mac, strings.Join(seen, ", ")),
			Remedy:  remedy + "; or, if a machine has it that was taken out of this cluster, switch that one off",
		})
	}
	slices.SortFunc(out, func(a, b preflight.Finding) int { return strings.Compare(a.Message, b.Message) })
	return out
}
