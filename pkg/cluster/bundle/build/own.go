package build

import (
	"slices"

	"github.com/openpai/paictl"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/version"
)

// ownUser is the user of paictl's own programs, unless a program's chart specifies another user. The common distributions don't use this number.
const ownUser = "65532"

// Own returns the part of the recipe that builds the images of paictl's own programs, with paictl's version. An image contains one static program.
// Only the agent's image contains several programs and the C library.
func Own() Recipe {
	m := Module{
		Name: "paictl", Path: paictl.Module, Own: paictl.Source(), Version: version.Version,
		LDFlags: "-X " + paictl.Module + "/pkg/version.Version={version}",
	}
	// The scheduler is kube-scheduler with a plugin. It uses the libraries of the pinned Kubernetes release, and not the libraries of paictl.
	scheduler := m
	scheduler.Name, scheduler.ModFile, scheduler.Tags = "pai-scheduler", "cmd/pai-scheduler/kubernetes.mod", "pai_scheduler"
	scheduler.LDFlags += " -X k8s.io/component-base/version.gitVersion=" + version.Kubernetes
	// pai-nvml loads NVIDIA's library, which is linked with the machine's C library.
	nvml := m
	nvml.Name, nvml.CGO, nvml.Dynamic, nvml.Programs = "pai-nvml", true, true, []Program{{Name: "pai-nvml", Package: paictl.Module + "/cmd/pai-nvml"}}
	// The toolkit determines which parts of NVIDIA's driver a container needs. Its hook runs on the machines, with their C library. The C library
	// must have version 2.34 or later.
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

// OwnImages returns the images of paictl's own programs. Each image contains a single program.
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

// machinesOf returns the roles of the machines that need a program's image; nil means all machines.
func machinesOf(p paictl.Program) []string {
	if p.Masters {
		return []string{master}
	}
	return nil
}

// onMachines changes a recipe for programs that run directly on machines. It removes their images, and adds the programs to the bundle.
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
