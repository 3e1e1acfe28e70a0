package cluster

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/ssh"
)

// images imports the bundle's OCI images into containerd, pinned, so that the kubelet
// neither pulls nor collects them.
type images struct{ want *desired }

const (
	phaseImages      = "images"
	upstreamRegistry = "registry.k8s.io"
	// kubeStateMetrics is in the same registry but isn't part of Kubernetes: its chart names it.
	kubeStateMetrics = "kube-state-metrics/"
)

func (*images) name() string              { return phaseImages }
func (*images) traits() traits            { return traits{upgrade: upgradeImages} }
func (*images) applies(*Node) bool        { return true }
func (*images) waits(*Node, *plan) []step { return nil }
func (*images) verify(*Node) string       { return "" }

// imageRef returns the name that nodes use for one of the bundle's images. Kubernetes' images have
// kubernetes.docker-registry in place of upstream's registry, and paictl's images have
// cluster.docker-registry, as the charts expect.
func (s *Spec) imageRef(ref string) string {
	if name, ok := strings.CutPrefix(ref, bundle.OwnRegistry+"/"); ok {
		own := s.Config.Services.Cluster.DockerRegistry
		return path.Join(own.Domain, own.Namespace, name)
	}
	reg := s.Config.Kubernetes.Kubernetes.DockerRegistry
	rest, ok := strings.CutPrefix(ref, upstreamRegistry+"/")
	if reg == "" || !ok || strings.HasPrefix(rest, kubeStateMetrics) {
		return ref
	}
	return path.Join(reg, rest)
}

func (*images) detect(*Node) (string, error) { return "d_images\n", nil }

func (p *images) diff(n *Node, w *world) ([]Change, error) {
	a := w.of(n, phaseImages)
	var out []Change
	for _, img := range p.want.artifacts(n, bundle.KindImage) {
		if !p.present(a, img) {
			out = append(out, Change{Action: "import", Target: p.want.imageRef(img.Image), Detail: img.Version})
		}
	}
	return out, nil
}

// present reports whether the image that was imported from this very file is still the one under its name.
func (p *images) present(a answer.Answer, img bundle.Artifact) bool {
	ref := p.want.imageRef(img.Image)
	imported, ok := a.Row("imported", ref)
	return ok && len(imported) == 2 && imported[0] == img.SHA256 && imported[1] == a.Value("image", ref) && imported[1] != ""
}

func (p *images) carries(n *Node, _ *world, cs []Change) []bundle.Artifact {
	todo := map[string]bool{}
	for _, c := range cs {
		todo[c.Target] = true
	}
	return slices.DeleteFunc(p.want.artifacts(n, bundle.KindImage), func(img bundle.Artifact) bool { return !todo[p.want.imageRef(img.Image)] })
}

func (p *images) apply(ctx context.Context, r *run, n *Node, cs []Change) error {
	var files []ssh.File
	var b strings.Builder
	b.WriteString("p_images <<'PAICTL_DATA'\n")
	for _, img := range p.carries(n, r.planned.world, cs) {
		files = append(files, r.uploadFile(staged(img), img))
		fmt.Fprintf(&b, "%s\t%s\t%s\n", img.SHA256, img.Image, p.want.imageRef(img.Image))
	}
	if err := r.upload(ctx, n, phaseImages, files); err != nil {
		return err
	}
	b.WriteString("PAICTL_DATA\n")
	_, err := r.script(ctx, n, phaseImages, "import", b.String())
	return err
}
