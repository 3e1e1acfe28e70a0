package image

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/openpai/paictl"
	"github.com/openpai/paictl/pkg/cluster/bundle"
	"github.com/openpai/paictl/pkg/cluster/bundle/oci"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/version"
	"github.com/openpai/paictl/test/tier"
)

const upstreamRef = "quay.io/prometheus/prometheus:v3.15.0"

// newBundle creates a bundle with paictl's own images and an upstream image. Each image contains one file.
func newBundle(t *testing.T) *bundle.Bundle {
	t.Helper()
	t.Setenv("XDG_CACHE_HOME", t.TempDir()) // the folder of the cache of hashed files
	dir := t.TempDir()
	w, err := bundle.Create(dir, &bundle.Manifest{Kubernetes: "v1.36.3", Arch: "amd64", Origin: bundle.OriginBuild})
	require.NoError(t, err)
	defer w.Close()
	add := func(name, ref string) {
		layer, err := oci.NewLayer(filepath.Join(t.TempDir(), "layer"), []oci.Entry{{Path: name, Mode: 0o755, Data: []byte(name)}})
		require.NoError(t, err)
		img, err := oci.NewImage(oci.Config{Arch: "amd64", Entrypoint: []string{"/" + name}}, layer)
		require.NoError(t, err)
		a := bundle.Artifact{Name: name, Version: version.Version, Kind: bundle.KindImage, Path: bundle.PathOf(bundle.KindImage, name), Image: ref}
		a.Digest, err = oci.WriteArchive(t.Context(), w.Work(name), ref, img)
		require.NoError(t, err)
		_, err = w.Add(t.Context(), a, name, w.Work(name))
		require.NoError(t, err)
	}
	for _, o := range Owned() {
		add(o.Name, o.Ref)
	}
	add("prometheus", upstreamRef)
	b, err := w.Commit()
	require.NoError(t, err)
	return b
}

func targets(items []Item) []string {
	var out []string
	for _, i := range items {
		out = append(out, i.Target)
	}
	return out
}

func TestImagesGoWhereTheConfigurationSays(t *testing.T) {
	b := newBundle(t)
	own := Destination{Registry: "registry.example.org/pai", Tag: "v9"}
	both := own
	both.Mirror = "mirror.example.org:5000/cache"
	ours := []string{"registry.example.org/pai/pai-agent:v9", "registry.example.org/pai/pai-alert-handler:v9", "registry.example.org/pai/pai-api-proxy:v9", "registry.example.org/pai/pai-api-vip:v9", "registry.example.org/pai/pai-backup:v9", "registry.example.org/pai/pai-controller:v9", "registry.example.org/pai/pai-csr-approver:v9", "registry.example.org/pai/pai-logs:v9", "registry.example.org/pai/pai-peer:v9", "registry.example.org/pai/pai-runtime:v9", "registry.example.org/pai/pai-scheduler:v9", "registry.example.org/pai/pai-server:v9", "registry.example.org/pai/pai-volume:v9", "registry.example.org/pai/pai-watchdog:v9"}
	const mirrored = "mirror.example.org:5000/cache/prometheus/prometheus:v3.15.0"
	for name, tt := range map[string]struct {
		d     Destination
		names []string
		all   bool
		want  []string
	}{
		"own images without a word":      {both, nil, false, ours},
		"one image by name":              {both, []string{"pai-volume"}, false, ours[12:13]},
		"an upstream image by name":      {both, []string{"prometheus"}, false, []string{mirrored}},
		"all images":                     {both, nil, true, append(ours, mirrored)},
		"own images need no mirror":      {own, nil, false, ours},
		"an upstream image needs no own": {Destination{Mirror: both.Mirror}, []string{"prometheus"}, false, []string{mirrored}},
	} {
		t.Run(name, func(t *testing.T) {
			items, err := Plan(b, tt.d, tt.names, tt.all)
			require.NoError(t, err)
			assert.ElementsMatch(t, tt.want, targets(items))
		})
	}
}

func TestAPlanThatCannotBeIsRefused(t *testing.T) {
	b := newBundle(t)
	for name, tt := range map[string]struct {
		d          Destination
		names      []string
		all        bool
		want, hint string
	}{
		"an unknown name":               {Destination{Registry: "r.io/x", Tag: "v1"}, []string{"nothing"}, false, "contains no image nothing", "image list"},
		"upstream images and no mirror": {Destination{Registry: "r.io/x", Tag: "v1"}, nil, true, upstreamRef, "cluster.docker-registry.mirror"},
		"own images and no registry":    {Destination{Mirror: "m.io"}, nil, false, "no registry is named for pai-agent", "--registry"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Plan(b, tt.d, tt.names, tt.all)
			require.ErrorContains(t, err, tt.want)
			assert.Contains(t, hint.Of(err), tt.hint)
		})
	}
}

func TestAMissingOwnImageNamesTheCommandThatMakesIt(t *testing.T) {
	dir := t.TempDir()
	w, err := bundle.Create(dir, &bundle.Manifest{Kubernetes: "v1.36.3", Arch: "amd64", Origin: bundle.OriginBuild})
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, os.WriteFile(w.Work("f"), nil, 0o644))
	_, err = w.Add(t.Context(), bundle.Artifact{Name: "x", Version: "v1", Kind: bundle.KindTool, Path: "tools/x"}, "x", w.Work("f"))
	require.NoError(t, err)
	b, err := w.Commit()
	require.NoError(t, err)
	_, err = Plan(b, Destination{Registry: "r.io/x", Tag: "v1"}, nil, false)
	require.ErrorContains(t, err, "contains no image pai-agent")
	assert.Contains(t, hint.Of(err), "paictl image build pai-agent")
}

// templates/library/_pai.tpl contains the same rule for charts.
func TestAMirrorTakesThePlaceOfTheHostAsInTheCharts(t *testing.T) {
	chartsRule := regexp.MustCompile(`^[^/]*[.:][^/]*/`)
	for _, ref := range []string{upstreamRef, "registry.k8s.io/pause:3.10.2", "docker.io/grafana/grafana:12.0.0", "localhost:5000/a/b:v1"} {
		got, err := Mirrored("mirror.example.org/cache/", ref)
		require.NoError(t, err)
		assert.Equal(t, "mirror.example.org/cache/"+chartsRule.ReplaceAllString(ref, ""), got)
	}
	_, err := Mirrored("mirror.example.org", "busybox:1")
	require.ErrorContains(t, err, "names no registry")
}

func TestADestinationThatCannotBeIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		d    Destination
		want string
	}{
		"a URL":                {Destination{Registry: "https://r.example.org/x", Tag: "v1"}, "is a URL"},
		"a login":              {Destination{Registry: "u:sekrit@r.example.org/x", Tag: "v1"}, `"********@r.example.org/x" is not a registry`},
		"a URL with a login":   {Destination{Registry: "https://u:sekrit@r.example.org/x", Tag: "v1"}, `"https://********@r.example.org/x" is a URL`},
		"a mirror's URL":       {Destination{Mirror: "http://m.example.org"}, "is a URL"},
		"a project in capital": {Destination{Registry: "r.example.org/Pai", Tag: "v1"}, "is not a registry"},
		"no host":              {Destination{Registry: "pai", Tag: "v1"}, "is not a registry"},
		"a tag with a plus":    {Destination{Registry: "r.example.org/pai", Tag: "v1+x"}, "is not a tag"},
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, tt.d.Check(), tt.want) })
	}
	require.NoError(t, Destination{Registry: "docker.io/openpai", Tag: "v1", Mirror: "127.0.0.1:5000"}.Check())
}

func TestTwoBuildsInDifferentFoldersGiveTheSameImages(t *testing.T) {
	tier.More(t, "all programs, built twice")
	var lists [][]bundle.Artifact
	for range 2 {
		b, err := Build(t.Context(), t.TempDir(), nil, nil)
		require.NoError(t, err)
		require.NoError(t, b.Verify(t.Context(), nil))
		lists = append(lists, b.List(""))
	}
	assert.Equal(t, lists[0], lists[1])
	var refs []string
	for _, a := range lists[0] {
		refs = append(refs, a.Image)
	}
	var want []string
	for _, name := range paictl.Programs() {
		want = append(want, "docker.io/openpai/"+name+":"+version.Tag())
	}
	assert.Equal(t, want, refs)
}

func TestOneImageIsBuiltByItsName(t *testing.T) {
	b, err := Build(t.Context(), t.TempDir(), []string{"pai-volume"}, nil)
	require.NoError(t, err)
	require.Len(t, b.List(""), 1)
	_, err = Build(t.Context(), t.TempDir(), []string{"kubelet"}, nil)
	require.ErrorContains(t, err, "kubelet is not one of paictl's own images")
}

func TestABuildDoesNotEmptyABundle(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	_, err := Build(t.Context(), dir, nil, nil)
	require.ErrorContains(t, err, "contains a whole bundle")
	assert.Contains(t, hint.Of(err), "paictl bundle build -o "+dir)
}
