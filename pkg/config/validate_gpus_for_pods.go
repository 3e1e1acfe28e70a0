package config

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/openpai/paictl/pkg/layout"
	"github.com/openpai/paictl/pkg/ui/plural"
)

// checkGPUsForPods checks the GPUs of a machine that are reserved for ordinary pods. Another check compares them with the scheduler's cells.
func (k *checker) checkGPUsForPods(p fieldPath, m layout.Machine) {
	if len(m.GPUsForPods) == 0 {
		return
	}
	r := k.layout
	sku, ok := k.c.Layout.MachineSKU[m.SKU]
	switch gpu := sku.GPU; {
	case !ok || !sku.Discovered && incomplete(sku):
		return // that has its own finding
	case gpu == nil || gpu.Count < 1:
		r.fail(p, "layout/gpus-for-pods", fmt.Sprintf("machines of the SKU %s have no GPUs", m.SKU), "remove the line")
		return
	case !gpu.Simulated && !gpu.NVIDIA():
		r.fail(p, "layout/gpus-for-pods", fmt.Sprintf("%s is not a GPU of NVIDIA; ordinary pods can't get others", gpu.Type), "remove the line")
		return
	case gpu.MIG != "":
		r.fail(p, "layout/gpus-for-pods", "the GPUs of the SKU "+m.SKU+" are split into instances (gpu.mig); ordinary pods can't get those", "remove the line, or give the machine a separate SKU without mig")
		return
	case gpu.Parts > 1:
		r.fail(p, "layout/gpus-for-pods", "jobs share the GPUs of the SKU "+m.SKU+" (gpu.parts); ordinary pods can't get those", "remove the line, or give the machine a separate SKU without parts")
		return
	default:
		for i, index := range m.GPUsForPods {
			switch {
			case index < 0 || index >= gpu.Count:
				r.fail(p.With(i), "layout/gpus-for-pods", fmt.Sprintf("there is no GPU %d: the machine has %s", index, plural.Of(gpu.Count, "GPU")), fmt.Sprintf("write indices from 0 to %d", gpu.Count-1))
			case slices.Contains(m.GPUsForPods[:i], index):
				r.fail(p.With(i), "layout/gpus-for-pods", fmt.Sprintf("GPU %d is listed twice", index), "write it once")
			}
		}
	}
	k.checkServesPods(p)
}

func (k *checker) checkServesPods(p fieldPath) {
	v, err := version.ParseGeneric(k.c.Kubernetes.Kubernetes.Version)
	switch {
	case err != nil: // that has its own finding, or it isn't known
	case v.LessThan(version.MajorMinor(1, 34)):
		k.layout.fail(p, "layout/gpus-for-pods", fmt.Sprintf("Kubernetes %s can't allocate GPUs to ordinary pods: this needs 1.34", v), "remove the line, or upgrade Kubernetes")
	case v.LessThan(version.MajorMinor(1, 36)):
		k.layout.warn(p, "layout/gpus-for-pods", fmt.Sprintf("Kubernetes %s allocates these GPUs only to pods with a ResourceClaim, not for nvidia.com/gpu, which needs 1.36", v), "use claims (services.md), or upgrade Kubernetes")
	}
}
