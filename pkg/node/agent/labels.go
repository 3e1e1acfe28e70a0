package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	corev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/node/agent/gpu"
)

// This file writes labels to the machine's Node that describe the GPUs. The agent writes the same labels as NVIDIA's GPU feature discovery and AMD's
// node labeller, so that existing selectors match. The policy in the agent's chart allows only these labels.

// SimulatedLabel marks Nodes whose GPUs are simulated.
const SimulatedLabel = "paictl.openpai.org/gpu-simulated"

const labelOwner = "pai-agent-labels"

// labels returns the labels of the machine's Node. ok is false if the GPUs are unknown. Callers must then not change the labels.
func (d *Driver) labels() (out map[string]string, ok bool) {
	if seen, _ := d.gpus.answered(); !seen || d.vendor == nil {
		return nil, false
	}
	all, _ := d.gpus.cards()
	there := slices.DeleteFunc(all, func(g device) bool { return g.missing || g.Lost })
	if len(there) == 0 {
		return map[string]string{}, true
	}
	driver, cuda := d.gpus.versions()
	out = d.vendor.labels(there, driver, cuda)
	if there[0].Simulated {
		out[SimulatedLabel] = "true"
	}
	maps.DeleteFunc(out, func(key, value string) bool {
		return len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0
	})
	return out, true
}

// label writes the labels to the Node by server-side apply. The API server removes labels that the agent no longer writes. label doesn't change a
// label that another program has set to another value, because NVIDIA's and AMD's programs may also run.
func (d *Driver) label(ctx context.Context, client kubernetes.Interface) error {
	want, ok := d.labels()
	if !ok {
		return nil
	}
	for {
		node := corev1.Node(d.node).WithLabels(want)
		_, err := client.CoreV1().Nodes().Apply(ctx, node, metav1.ApplyOptions{FieldManager: labelOwner})
		if err == nil {
			return nil
		}
		others := conflicts(err)
		before := len(want)
		for _, key := range others {
			delete(want, key)
		}
		if len(want) == before {
			return fmt.Errorf("write which GPUs it has on the node: %w", err)
		}
		d.log.DebugContext(ctx, "labels of others stay as they are", "labels", others)
	}
}

// conflicts returns the labels that belong to another field manager.
func conflicts(err error) (out []string) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsConflict(err) || status.Status().Details == nil {
		return nil
	}
	for _, c := range status.Status().Details.Causes {
		if key, ok := strings.CutPrefix(c.Field, ".metadata.labels."); ok && c.Type == metav1.CauseTypeFieldManagerConflict {
			out = append(out, key)
		}
	}
	return out
}

// notInProduct matches the characters that NVIDIA's program removes from product names.
var notInProduct = regexp.MustCompile(`[^A-Za-z0-9_. -]`)

func word(name string) string {
	return strings.Join(strings.Fields(notInProduct.ReplaceAllString(name, "")), "-")
}

// labels returns the labels that NVIDIA's GPU feature discovery would write (github.com/NVIDIA/k8s-device-plugin, internal/lm). The labels describe
// the first GPU.
func (n nvidia) labels(gpus []device, driver, cuda string) map[string]string {
	const prefix = "nvidia.com/"
	first := gpus[0]
	out := map[string]string{prefix + "gpu.present": "true", prefix + "gpu.count": strconv.Itoa(len(gpus))}
	if product := word(first.Model); product != "" {
		out[prefix+"gpu.product"] = product
	}
	if first.Memory > 0 {
		out[prefix+"gpu.memory"] = strconv.FormatUint(first.Memory>>20, 10)
	}
	if major, minor, ok := strings.Cut(first.Facts[gpu.Compute], "."); ok {
		out[prefix+"gpu.compute.major"], out[prefix+"gpu.compute.minor"] = major, minor
		if name := family(major, minor); name != "" {
			out[prefix+"gpu.family"] = name
		}
	}
	if first.Facts[gpu.MIGCapable] != "" {
		capable := slices.ContainsFunc(gpus, func(g device) bool { return g.Facts[gpu.MIGCapable] == "true" })
		out[prefix+"mig.capable"] = strconv.FormatBool(capable)
	}
	if i := slices.IndexFunc(gpus, func(g device) bool { return len(g.instances()) > 0 }); i >= 0 {
		n.labelInstances(out, gpus, gpus[i].instances()[0])
	}
	if v := strings.Split(driver, "."); len(v) == 2 || len(v) == 3 {
		v = append(v, "") // without a revision it is empty
		out[prefix+"cuda.driver-version.full"] = driver
		for i, part := range []string{"major", "minor", "revision"} {
			out[prefix+"cuda.driver-version."+part] = v[i]
		}
		// These are old names of the labels. NVIDIA's program still writes the old names.
		out[prefix+"cuda.driver.major"], out[prefix+"cuda.driver.minor"], out[prefix+"cuda.driver.rev"] = v[0], v[1], v[2]
	}
	if major, minor, ok := strings.Cut(cuda, "."); ok {
		out[prefix+"cuda.runtime-version.full"] = cuda
		out[prefix+"cuda.runtime-version.major"], out[prefix+"cuda.runtime-version.minor"] = major, minor
		out[prefix+"cuda.runtime.major"], out[prefix+"cuda.runtime.minor"] = major, minor
	}
	if machine, err := os.ReadFile(filepath.Join(n.root, "sys/class/dmi/id/product_name")); err == nil && !first.Simulated {
		if name := word(string(machine)); name != "" {
			out[prefix+"gpu.machine"] = name
		}
	}
	return out
}

// labelInstances changes the labels in out for split GPUs, like NVIDIA's program with the strategy "single". The labels describe the first instance.
func (n nvidia) labelInstances(out map[string]string, gpus []device, first gpu.Instance) {
	const prefix = "nvidia.com/"
	count := 0
	for _, g := range gpus {
		count += len(g.instances())
	}
	out[prefix+"mig.strategy"], out[prefix+"gpu.count"] = "single", strconv.Itoa(count)
	if product := out[prefix+"gpu.product"]; product != "" {
		out[prefix+"gpu.product"] = product + "-MIG-" + first.Profile
	}
	out[prefix+"gpu.memory"] = strconv.FormatUint(first.Memory>>20, 10)
	for name, value := range first.Facts {
		out[prefix+"gpu."+name] = value
	}
}

// family returns the name of the architecture for a compute capability, or "" if the capability is unknown.
func family(major, minor string) string {
	switch known := map[string]string{"3": "kepler", "5": "maxwell", "6": "pascal", "7": "volta", "8": "ampere", "9": "hopper", "10": "blackwell", "12": "blackwell"}; {
	case major == "7" && minor >= "5":
		return "turing"
	case major == "8" && minor >= "9":
		return "ada-lovelace"
	default:
		return known[major]
	}
}

// labels returns the labels that AMD's node labeller would write (github.com/ROCm/k8s-device-plugin, cmd/k8s-node-labeller).
func (a amd) labels(gpus []device, driver, _ string) map[string]string {
	counts := map[string]map[string]int{} // by the kind of label and its value
	add := func(kind, value string) {
		if value == "" {
			return
		}
		if counts[kind] == nil {
			counts[kind] = map[string]int{}
		}
		counts[kind][value]++
	}
	for _, g := range gpus {
		for _, kind := range []string{"device-id", "family", "simd-count", "cu-count"} {
			add(kind, g.Facts[kind])
		}
		name := g.Facts["product-name"]
		if name == "" && !strings.HasPrefix(g.Model, "pci-") {
			name = strings.ReplaceAll(g.Model, "-", " ")
		}
		add("product-name", strings.NewReplacer(" ", "_", "(", "", ")", "").Replace(name))
		if g.Memory > 0 {
			add("vram", fmt.Sprintf("%.0fG", math.Round(float64(g.Memory>>20)/1024)))
		}
	}
	const prefix = "amd.com/gpu."
	out := map[string]string{}
	for kind, values := range counts {
		for value, n := range values {
			out["beta."+prefix+kind+"."+value] = strconv.Itoa(n)
			if len(values) == 1 {
				out["beta."+prefix+kind], out[prefix+kind] = value, value
			} else {
				out[prefix+kind+"."+value] = strconv.Itoa(n)
			}
		}
	}
	// A driver that is part of the kernel has no version.
	if driver != "" && !gpus[0].Simulated {
		out[prefix+"driver-version"] = driver
	}
	return out
}
