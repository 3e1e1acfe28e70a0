package phases

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/openpai/paictl/pkg/cluster/answer"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/engine"
	"github.com/openpai/paictl/pkg/ssh"
)

// images imports the bundle's OCI images into containerd. It pins the images, so that the kubelet neither pulls nor removes them.
type images struct{ want *engine.Desired }

// Names of the phase and of registries.
const (
	PhaseImages      = "images"
	upstreamRegistry = "registry.k8s.io"
	// kubeStateMetrics is an image in upstreamRegistry that isn't part of Kubernetes. The service's chart determines the registry of this image.
	kubeStateMetrics = "kube-state-metrics/"
)

func (*images) Name() string                                   { return PhaseImages }
func (*images) Traits() engine.Traits                          { return engine.Traits{Upgrade: engine.UpgradeImages} }
func (*images) Applies(*engine.Node) bool                      { return true }
func (*images) Waits(*engine.Node, *engine.Plan) []engine.Step { return nil }
func (*images) Verify(*engine.Node) string                     { return "" }

// ImageRef returns the reference that nodes use for an image in the bundle. For images of Kubernetes, kubernetes.docker-registry is the registry. For
// images of paictl, cluster.docker-registry is the registry, as in the charts.
func ImageRef(s *engine.Spec, ref string) string {
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

func (*images) Detect(*engine.Node) (string, error) { return "d_images\n", nil }

func (p *images) Diff(n *engine.Node, w *engine.World) ([]engine.Change, error) {
	a := w.Of(n, PhaseImages)
	var out []engine.Change
	for _, img := range p.want.Artifacts(n, bundle.KindImage) {
		if !p.present(a, img) {
			out = append(out, engine.Change{Action: "import", Target: ImageRef(p.want.Spec, img.Image), Detail: img.Version})
		}
	}
	return out, nil
}

// present reports whether this archive was imported and its reference still belongs to the imported image.
func (p *images) present(a answer.Answer, img bundle.Artifact) bool {
	ref := ImageRef(p.want.Spec, img.Image)
	imported, ok := a.Row("imported", ref)
	return ok && len(imported) == 2 && imported[0] == img.SHA256 && imported[1] == a.Value("image", ref) && imported[1] != ""
}

func (p *images) Carries(n *engine.Node, _ *engine.World, cs []engine.Change) []bundle.Artifact {
	todo := map[string]bool{}
	for _, c := range cs {
		todo[c.Target] = true
	}
	return slices.DeleteFunc(p.want.Artifacts(n, bundle.KindImage), func(img bundle.Artifact) bool { return !todo[ImageRef(p.want.Spec, img.Image)] })
}

func (p *images) Apply(ctx context.Context, r *engine.Run, n *engine.Node, cs []engine.Change) error {
	var files []ssh.File
	var b strings.Builder
	b.WriteString("p_images <<'PAICTL_DATA'\n")
	for _, img := range p.Carries(n, r.Planned.World, cs) {
		files = append(files, r.UploadFile(engine.Staged(img), img))
		fmt.Fprintf(&b, "%s\t%s\t%s\n", img.SHA256, img.Image, ImageRef(p.want.Spec, img.Image))
	}
	if err := r.Upload(ctx, n, PhaseImages, files); err != nil {
		return err
	}
	b.WriteString("PAICTL_DATA\n")
	_, err := r.Script(ctx, n, PhaseImages, "import", b.String())
	return err
}
