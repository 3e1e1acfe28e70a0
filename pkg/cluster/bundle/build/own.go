package build

import (
	"slices"

	"github.com/openpai/paictl"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/version"
)

// ownUser is the user as which paictl's own programs run, unless their chart specifies another one. Its
// number is unused on the usual distributions.
const ownUser = "65532"

// Own returns the part of the recipe that builds images of paictl's own programs: one static program each, in an
// otherwise empty image, except the agent's, which needs the C library. They have paictl's version.
func Own() Recipe {
	m := Module{
		Name: "paictl", Path: paictl.Module, Own: paictl.Source(), Version: version.Version,
		LDFlags: "-X " + paictl.Module + "/pkg/version.Version={version}",
	}
	// The scheduler is kube-scheduler with a plugin, and uses the libraries of that release, which are not paictl's.
	scheduler := m
	scheduler.Name, scheduler.ModFile, scheduler.Tags = "pai-scheduler", "cmd/pai-scheduler/kubernetes.mod", "pai_scheduler"
	scheduler.LDFlags += " -X k8s.io/component-base/version.gitVersion=" + version.Kubernetes
	// pai-nvml loads NVIDIA's library, which is linked with the C library of its machine.
	nvml := m
	nvml.Name, nvml.CGO, nvml.Dynamic, nvml.Programs = "pai-nvml", true, true, []Program{{Name: "pai-nvml", Package: paictl.Module + "/cmd/pai-nvml"}}
	// The toolkit determines the parts of NVIDIA's driver that a container needs. Its hook runs on the machines, with their C library: 2.34
	// or newer.
	const toolkitPath = "github.com/NVIDIA/nvidia-container-toolkit"
	toolkit := Module{
		Name: "nvidia-container-toolkit", Path: toolkitPath, CGO: true, Dynamic: true,
		LDFlags:  "-X " + toolkitPath + "/internal/info.version={version}",
		Programs: []Program{{Name: "nvidia-ctk", Package: toolkitPath + "/cmd/nvidia-ctk"}, {Name: "nvidia-cdi-hook", Package: toolkitPath + "/cmd/nvidia-cdi-hook"}},
	}
	r := Recipe{Images: OwnImages()}
	for i, img := range r.Images {
		p := Program{Name: img.Name, Package: paictl.Module + "/cmd/" + img.Name}
		if img.Name == scheduler.Name {
			scheduler.Programs = []Program{p}
		} else {
			m.Programs = append(m.Programs, p)
		}
		if img.Name == "pai-agent" {
			for _, p := range slices.Concat(nvml.Programs, toolkit.Programs) {
				r.Images[i].Files = append(r.Images[i].Files, File{p.Name, p.Name})
			}
			r.Images[i].Debian = []string{"libc6"}
		}
	}
	r.Modules = []Module{nvml, toolkit, m, scheduler} // an image is built after its first program, so the other programs must be built before that
	return r
}

// OwnImages returns the images of Own, each with only its program.
func OwnImages() []Image {
	labels := map[string]string{"org.opencontainers.image.source": "https://" + paictl.Module}
	if commit := version.Get().Commit; commit != "" {
		labels["org.opencontainers.image.revision"] = commit
	}
	var out []Image
	for _, own := range paictl.InCluster() {
		out = append(out, Image{
			Name: own.Name, Ref: bundle.OwnRegistry + "/" + own.Name + ":{tag}", User: ownUser, Roles: machinesOf(own),
			Files: []File{{own.Name, own.Name}}, Entrypoint: []string{"/" + own.Name}, Labels: labels,
		})
	}
	return out
}

// machinesOf returns the machines that need a program's image; nil means all.
func machinesOf(p paictl.Program) []string {
	if p.Masters {
		return []string{master}
	}
	return nil
}

// onMachines adds the programs that run on the machines themselves, not in images.
func onMachines(r Recipe) Recipe {
	for _, own := range paictl.InCluster() {
		if !own.Machine {
			continue
		}
		r.Images = slices.DeleteFunc(r.Images, func(i Image) bool { return i.Name == own.Name })
		for m := range r.Modules {
			for p := range r.Modules[m].Programs {
				if r.Modules[m].Programs[p].Name == own.Name {
					r.Modules[m].Programs[p].Kind = bundle.KindBinary
				}
			}
		}
	}
	return r
}
