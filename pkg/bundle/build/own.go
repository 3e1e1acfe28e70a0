package build

import (
	"slices"

	"github.com/openpai/paictl"
	"github.com/openpai/paictl/pkg/bundle"
	"github.com/openpai/paictl/pkg/version"
)

// ownUser is who paictl's own programs run as unless their chart says otherwise. It is no one's
// number on the usual distributions.
const ownUser = "65532"

// Own is the part of the recipe that makes images of paictl's own programs: one static program
// each, on nothing, and in the agent's one that needs the C library. They carry paictl's version.
func Own() Recipe {
	m := Module{
		Name: "paictl", Path: paictl.Module, Own: paictl.Source(), Version: version.Version,
		LDFlags: "-X " + paictl.Module + "/pkg/version.Version={version}",
	}
	labels := map[string]string{"org.opencontainers.image.source": "https://" + paictl.Module}
	if commit := version.Get().Commit; commit != "" {
		labels["org.opencontainers.image.revision"] = commit
	}
	// It is kube-scheduler with a plugin, and has the libraries of that release, which are not paictl's.
	scheduler := m
	scheduler.Name, scheduler.ModFile, scheduler.Tags = "pai-scheduler", "cmd/pai-scheduler/kubernetes.mod", "pai_scheduler"
	scheduler.LDFlags += " -X k8s.io/component-base/version.gitVersion=" + version.Kubernetes
	// It loads NVIDIA's library, which is linked with the C library of its machine.
	nvml := m
	nvml.Name, nvml.CGO, nvml.Dynamic, nvml.Programs = "pai-nvml", true, true, []Program{{Name: "pai-nvml", Package: paictl.Module + "/cmd/pai-nvml"}}
	// It knows what of NVIDIA's driver a container needs. Its hook runs on the machines, with their C library: 2.34 or newer.
	const toolkitPath = "github.com/NVIDIA/nvidia-container-toolkit"
	toolkit := Module{
		Name: "nvidia-container-toolkit", Path: toolkitPath, CGO: true, Dynamic: true,
		LDFlags:  "-X " + toolkitPath + "/internal/info.version={version}",
		Programs: []Program{{Name: "nvidia-ctk", Package: toolkitPath + "/cmd/nvidia-ctk"}, {Name: "nvidia-cdi-hook", Package: toolkitPath + "/cmd/nvidia-cdi-hook"}},
	}
	var r Recipe
	for _, own := range paictl.InCluster() {
		name := own.Name
		p := Program{Name: name, Package: paictl.Module + "/cmd/" + name}
		if name == scheduler.Name {
			scheduler.Programs = []Program{p}
		} else {
			m.Programs = append(m.Programs, p)
		}
		img := Image{
			Name: name, Ref: bundle.OwnRegistry + "/" + name + ":{tag}", User: ownUser, Roles: machinesOf(own),
			Files: []File{{name, name}}, Entrypoint: []string{"/" + name}, Labels: labels,
		}
		if name == "pai-agent" {
			for _, p := range slices.Concat(nvml.Programs, toolkit.Programs) {
				img.Files = append(img.Files, File{p.Name, p.Name})
			}
			img.Debian = []string{"libc6"}
		}
		r.Images = append(r.Images, img)
	}
	r.Modules = []Module{nvml, toolkit, m, scheduler} // an image is made once its first program is: the others come before
	return r
}

// machinesOf are the machines that need a program's image; nil is all of them.
func machinesOf(p paictl.Program) []string {
	if p.Masters {
		return []string{master}
	}
	return nil
}
