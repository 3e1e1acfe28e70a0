package config

import (
	"cmp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/layout"
)

func nodeFacts(n corev1.Node) layout.Facts {
	id, version := osOf(n.Status.NodeInfo.OSImage)
	f := layout.Facts{
		Hostname: n.Name, OSID: id, OSVersion: version, Arch: n.Status.NodeInfo.Architecture, Driver: driverOf(n),
		VCores: int(n.Status.Capacity.Cpu().Value()), MemKiB: n.Status.Capacity.Memory().Value() >> 10,
	}
	count, model := nodeGPUs(n)
	for range count {
		// This field holds GPUs of all vendors, because other code counts the GPUs in it.
		f.NVIDIA = append(f.NVIDIA, layout.NVIDIAGPU{Model: model})
	}
	return f
}

// maxGPUs limits the number of GPUs that a node can report.
const maxGPUs = 1024

// nodeGPUs returns the number of GPUs of a node, and their model if the node's labels contain it.
func nodeGPUs(n corev1.Node) (count int, model string) {
	for _, vendor := range []struct {
		resource corev1.ResourceName
		unknown  string
		labels   []string
	}{
		{"nvidia.com/gpu", "NVIDIA-GPU", []string{"nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator"}},
		{"amd.com/gpu", "AMD-GPU", []string{"amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"}},
	} {
		quantity := n.Status.Capacity[vendor.resource]
		if quantity.Value() <= 0 {
			continue
		}
		count = int(min(quantity.Value(), maxGPUs))
		for _, label := range vendor.labels {
			model = cmp.Or(model, n.Labels[label])
		}
		// A node with time slicing reports each GPU several times.
		if product, ok := strings.CutSuffix(model, "-SHARED"); ok {
			model = product
			if built, err := strconv.Atoi(n.Labels["nvidia.com/gpu.count"]); err == nil && built > 0 && built < count {
				count = built
			}
		}
		return count, cmp.Or(model, vendor.unknown)
	}
	return 0, ""
}

func driverOf(n corev1.Node) string {
	if v := n.Labels["nvidia.com/cuda.driver-version.full"]; v != "" {
		return v
	}
	var parts []string
	for _, part := range []string{"major", "minor", "rev"} {
		if v := n.Labels["nvidia.com/cuda.driver."+part]; v != "" {
			parts = append(parts, v)
		}
	}
	return strings.Join(parts, ".")
}

// osOf returns the ID and the VERSION_ID of an operating system, such as ubuntu and 22.04 for "Ubuntu 22.04.4 LTS". The API reports only the full
// name.
func osOf(image string) (id, version string) {
	words := strings.FieldsFunc(strings.ToLower(image), func(r rune) bool { return r == ' ' || r == '/' || r == '(' || r == ')' })
	if len(words) == 0 {
		return "", ""
	}
	id = words[0]
	if short, ok := map[string]string{
		"amazon": "amzn", "red": "rhel", "suse": "sles", "container-optimized": "cos", "oracle": "ol", "cbl-mariner": "mariner", "azure": "azurelinux",
	}[id]; ok {
		id = short
	}
	for _, w := range words[1:] {
		w = strings.TrimPrefix(w, "v")
		if w == "" || w[0] < '0' || w[0] > '9' {
			continue
		}
		version = w
		break
	}
	// Remove the number of the point release: 22.04.4 is a point release of Ubuntu 22.04, and 2023.6 is a point release of Amazon Linux 2023.
	if parts, ok := map[string]int{"ubuntu": 2, "amzn": 1}[id]; ok {
		all := strings.Split(version, ".")
		version = strings.Join(all[:min(len(all), parts)], ".")
	}
	return id, version
}
