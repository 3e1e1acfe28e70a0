package build

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "refresh modules.txtar from the modules in bundle/")

func TestTheEmbeddedModulesAreThoseOfTheRepository(t *testing.T) {
	var want txtar.Archive
	for _, m := range Default().Modules {
		if m.Own != nil {
			continue // it is part of paictl's own source
		}
		for _, name := range []string{"go.mod", "go.sum"} {
			data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "bundle", m.Name, name))
			require.NoError(t, err)
			want.Files = append(want.Files, txtar.File{Name: m.Name + "/" + name, Data: data})
		}
	}
	if *update {
		require.NoError(t, os.WriteFile("modules.txtar", txtar.Format(&want), 0o644))
		return
	}
	have, err := pinnedModules()
	require.NoError(t, err)
	assert.Equal(t, string(txtar.Format(&want)), string(have),
		"run: go test ./pkg/cluster/bundle/build -run EmbeddedModules -update")
}

// Equal versions save compile time, because the libraries of Kubernetes are a quarter of the code in a bundle, in paictl and in its tests.
func TestProgramsThatShareLibrariesWithPaictlHaveThemInItsVersion(t *testing.T) {
	own := required(t, filepath.Join("..", "..", "..", "..", "go.mod"))
	for _, module := range []string{"coredns", "cri-tools", "kwok", "prometheus"} {
		pinned := required(t, filepath.Join("..", "..", "..", "..", "bundle", module, "go.mod"))
		// These modules are dependencies of the packages of Kubernetes' API. If the version of one module differs, all these packages must be compiled
		// twice.
		for _, library := range []string{
			"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "k8s.io/kube-openapi", "k8s.io/utils",
			"github.com/fxamacker/cbor/v2", "github.com/go-logr/logr", "github.com/go-openapi/swag", "github.com/google/gnostic-models",
			"golang.org/x/net", "golang.org/x/oauth2", "golang.org/x/sys", "golang.org/x/term", "golang.org/x/text", "golang.org/x/time",
			"google.golang.org/protobuf", "gopkg.in/inf.v0", "sigs.k8s.io/json", "sigs.k8s.io/structured-merge-diff/v6", "sigs.k8s.io/yaml",
		} {
			if version := pinned[library]; version != "" {
				assert.Equal(t, own[library], version, "cd bundle/%s && go get %s@%s && go mod tidy", module, library, own[library])
			}
		}
	}
}

var requirement = regexp.MustCompile(`(?m)^\t(\S+) (v\S+)`)

func required(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	versions := map[string]string{}
	for _, m := range requirement.FindAllStringSubmatch(string(data), -1) {
		versions[m[1]] = m[2]
	}
	require.NotEmpty(t, versions, file)
	return versions
}
