package fetch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// local reads a chart from a folder or an archive on this machine.
func local(ref catalogue.ChartRef) (*chart.Chart, error) {
	file := ref.Chart
	if !filepath.IsAbs(file) {
		if ref.Dir == "" {
			return nil, hint.Errorf("name the folder of the configuration with -p, or write an absolute path, or put the chart into a registry",
				"the configuration comes from the cluster, where the path %s is not available", file)
		}
		file = filepath.Join(ref.Dir, file)
	}
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, hint.Wrap(err, "relative paths start in the folder of the configuration")
	case info.IsDir() && ref.Digest != "":
		return nil, hint.Errorf("remove digest, or pack the chart with: helm package "+ref.Chart, "a folder has no digest")
	case info.IsDir():
		return loader.LoadDir(file)
	case info.Size() > maxArchive:
		return nil, fmt.Errorf("the archive has %d MiB, more than %d", info.Size()>>20, maxArchive>>20)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if got := digestOf(data); ref.Digest != "" && got != ref.Digest {
		return nil, wrongDigest(ref, got)
	}
	return loader.LoadArchive(bytes.NewReader(data))
}
