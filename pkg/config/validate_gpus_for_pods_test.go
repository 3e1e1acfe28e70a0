package config

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestGPUsForPodsTakeARecentKubernetes(t *testing.T) {
	for name, c := range map[string]struct {
		version, want string
		fails         bool
	}{
		"that knows claims alone":        {"v1.35.2+k3s1", "Kubernetes 1.35.2 allocates", false},
		"the same of a cloud":            {"v1.34.7-eks-1a2b3c4", "which needs 1.36", false},
		"that knows extended resources":  {"v1.36.3", "", false},
		"that knows no claims":           {"v1.33.1", "Kubernetes 1.33.1 can't allocate GPUs to ordinary pods: this needs 1.34", true},
		"or one whose release is secret": {"''", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			files := goodFiles()
			files[LayoutFile] = strings.Replace(files[LayoutFile], "roles: [worker]", "roles: [worker], gpus-for-pods: [7]", 1)
			files[KubernetesFile] = "kubernetes:\n  managed: false\n  cluster-name: a\n  dns-domain: cluster.local\n  version: " + c.version + "\n"
			findings, err := ValidateDir(folder(t, files))
			require.NoError(t, err)
			assert.Equal(t, c.fails, findings.Err() != nil)
			var said []string
			for _, f := range findings {
				if f.Rule == "layout/gpus-for-pods" {
					assert.Equal(t, "8:89: machine-list[1].gpus-for-pods [layout/gpus-for-pods]", short(f))
					said = append(said, f.Message)
				}
			}
			if c.want == "" {
				assert.Empty(t, said)
			} else {
				assert.Contains(t, strings.Join(said, "\n"), c.want)
			}
		})
	}
}

func TestMachinesWithoutNVIDIAsGPUsGiveNoneToPods(t *testing.T) {
	for gpu, want := range map[string]string{
		"": "machines of the SKU gpu have no GPUs",
		"gpu: {type: AMD-Instinct-MI300X, count: 8}, ":                  "AMD-Instinct-MI300X is not a GPU of NVIDIA",
		"gpu: {type: AMD-Instinct-MI300X, count: 8, simulated: true}, ": "",
	} {
		files := goodFiles()
		files[LayoutFile] = strings.Replace(files[LayoutFile], "gpu: {type: NVIDIA-A100-SXM4-80GB, count: 8}, ", gpu, 1)
		files[LayoutFile] = strings.Replace(files[LayoutFile], "roles: [worker]", "roles: [worker], gpus-for-pods: [7]", 1)
		findings, err := ValidateDir(folder(t, files))
		require.NoError(t, err)
		if want == "" {
			assert.Empty(t, findings)
			continue
		}
		require.Len(t, findings, 1)
		assert.Contains(t, findings[0].Message, want)
	}
}

func TestInstancesAreOfProfilesThatTheCardHas(t *testing.T) {
	const a100 = "NVIDIA-A100-SXM4-80GB"
	for name, c := range map[string]struct{ gpu, rest, want, remedy string }{
		"that it has":            {a100 + ", count: 8, mig: 1g.10gb", "", "", ""},
		"with one part":          {a100 + ", count: 8, mig: 1g.10gb, parts: 1", "", "", ""},
		"that it hasn't":         {a100 + ", count: 8, mig: 1g.5gb", "", `has no profile "1g.5gb"`, "it has 1g.10gb, 1g.20gb, 2g.20gb, 3g.40gb, 4g.40gb, 7g.80gb"},
		"in capitals":            {a100 + ", count: 8, mig: 1G.10GB", "", `has no profile "1G.10GB"`, "it has 1g.10gb"},
		"by a model that is two": {"A100, count: 8, mig: 1g.10gb", "", "different memory sizes", "NVIDIA-A100-SXM4-80GB"},
		"that can't be split":    {"Tesla-T4, count: 8, mig: 1g.10gb", "", "can't split a Tesla-T4", "remove the line"},
		"of AMD":                 {"AMD-Instinct-MI300X, count: 8, mig: 1g.10gb", "", "is not a GPU of NVIDIA", "remove the line"},
		"beside parts":           {a100 + ", count: 8, mig: 1g.10gb, parts: 4", "", "by the hardware (mig) or by time (parts), not by both", "remove one"},
		"for ordinary pods":      {a100 + ", count: 8, mig: 1g.10gb", ", gpus-for-pods: [7]", "are split into instances (gpu.mig)", "without mig"},
		"simulated":              {a100 + ", count: 8, simulated: true, mig: 3g.40gb", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			files := goodFiles()
			files[LayoutFile] = strings.Replace(files[LayoutFile], "NVIDIA-A100-SXM4-80GB, count: 8", c.gpu, 1)
			files[LayoutFile] = strings.Replace(files[LayoutFile], "roles: [worker]", "roles: [worker]"+c.rest, 1)
			findings, err := ValidateDir(folder(t, files))
			require.NoError(t, err)
			if c.want == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0].Message, c.want)
			assert.Contains(t, findings[0].Remedy, c.remedy)
		})
	}
}
