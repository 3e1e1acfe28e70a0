package store

import (
	"bytes"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/openpai/paictl/pkg/config"
)

// Differing compares the files of a folder with a ConfigMap in JSON. It returns the revision of the ConfigMap and the names of the files that
// differ. It doesn't compare secrets, because the ConfigMap doesn't contain them. Users with permission to read the ConfigMap therefore don't need
// permission to read secrets.
func (s *Store) Differing(configMap []byte, dir string, files map[string][]byte) (Revision, []string, error) {
	var cm corev1.ConfigMap
	if err := json.Unmarshal(configMap, &cm); err != nil {
		return Revision{}, nil, fmt.Errorf("read ConfigMap %s: %w", ConfigMapName, err)
	}
	r, err := revisionOf(&cm)
	if err != nil {
		return Revision{}, nil, err
	}
	shown, err := unpack(&cm)
	if err != nil {
		return r, nil, err
	}
	cluster, err := config.Parse(dir, files)
	if err != nil {
		return r, nil, err
	}
	folder, err := s.splitAll(cluster, dir, files)
	if err != nil {
		return r, nil, err
	}
	var out []string
	for _, name := range config.Files() {
		if !bytes.Equal(shown[name], folder.shown[name]) {
			out = append(out, name)
		}
	}
	return r, out, nil
}
