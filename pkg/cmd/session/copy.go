package session

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/openpai/paictl/pkg/cluster/engine"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// pushedCopy determines how a run compares the configuration that the cluster stores with the folder. The folder is read when they are compared,
// because "node add" and "node remove" change the folder during the run.
func pushedCopy(dir string) *engine.Copy {
	return &engine.Copy{
		Namespace: kube.SystemNamespace, Name: store.ConfigMapName,
		Push: "paictl config push -p " + hint.Quote(dir),
		Compare: func(configMap []byte) (int, []string, error) {
			files := map[string][]byte{}
			for _, name := range config.Files() {
				b, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					return 0, nil, fmt.Errorf("read the configuration: %w", err)
				}
				files[name] = b
			}
			s := store.New(nil) // the run queries the cluster
			s.SecretPaths = catalogue.SecretPaths
			r, differ, err := s.Differing(configMap, dir, files)
			return r.Number, differ, err
		},
	}
}
