package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/strictyaml"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
)

// Public is the configuration in a cluster without its secrets. Programs without permission to read secrets use it.
type Public struct {
	Revision Revision
	// Cluster is the configuration with a reference in place of each secret.
	Cluster *config.Cluster
	// Files are the texts of the files in the ConfigMap.
	Files map[string][]byte

	objects *objects
}

// Public returns the current configuration without its secrets. It doesn't read any secret. It returns ErrNone if the cluster has no configuration.
func (s *Store) Public(ctx context.Context) (*Public, error) {
	cm, err := s.client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, ConfigMapName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("read the cluster's configuration: %w", err)
	}
	return publicOf(cm)
}

func publicOf(cm *corev1.ConfigMap) (*Public, error) {
	p := &Public{objects: &objects{config: cm}}
	var err error
	if p.Revision, err = revisionOf(cm); err != nil {
		return nil, err
	}
	p.objects.head = p.Revision
	if p.objects.history, err = historyOf(cm); err != nil {
		return nil, err
	}
	if p.Files, err = unpack(cm); err != nil {
		return nil, err
	}
	for _, name := range config.Files() {
		if bytes.Equal(p.Files[name], []byte(Reference+"\n")) {
			return nil, hint.Errorf("change it in a folder: paictl config pull -o DIR, then: paictl config push -p DIR",
				"the secrets of %s can't be separated from the rest of the file", name)
		}
	}
	if p.Cluster, err = config.Parse("", p.Files); err != nil {
		return nil, fmt.Errorf("read the cluster's configuration, revision %d: %w", p.Revision.Number, err)
	}
	return p, nil
}

// Amend returns a draft with a new text for one file. The new text must contain the same secrets. Amend ignores old findings, because an earlier
// push has already accepted them.
func (s *Store) Amend(p *Public, name string, text []byte) (*Draft, error) {
	if n := bytes.Count(p.Files[name], []byte(referenceText)); bytes.Count(text, []byte(Reference)) != n || bytes.Count(text, []byte(referenceText)) != n {
		return nil, hint.Errorf("change it in a folder: paictl config pull -o DIR, then: paictl config push -p DIR", "the change of %s concerns its secrets", name)
	}
	files := maps.Clone(p.Files)
	files[name] = text
	cluster, err := config.Parse("", files)
	if err != nil {
		return nil, err
	}
	d := &Draft{Head: &p.Revision, Cluster: cluster, objects: p.objects, after: &Copy{shown: files}, amends: true}
	d.Warnings = added(config.Validate(p.Cluster, s.Checks...), config.Validate(cluster, s.Checks...))
	if err := d.Warnings.Err(); err != nil {
		return nil, err
	}
	d.Changes = changes(&Copy{Files: p.Files, shown: p.Files}, &Copy{Files: files, shown: files}, "cluster/", "pushed/")
	return d, nil
}

// added returns the findings that are only in the second list. It ignores positions, because lines may have moved.
func added(before, after config.Findings) config.Findings {
	type finding struct {
		file, field, rule, message string
		severity                   strictyaml.Severity
	}
	key := func(f *strictyaml.Finding) finding { return finding{f.File, f.Field, f.Rule, f.Message, f.Severity} }
	known := map[finding]int{}
	for i := range before {
		known[key(&before[i])]++
	}
	var out config.Findings
	for i := range after {
		if k := key(&after[i]); known[k] > 0 {
			known[k]--
			continue
		}
		out = append(out, after[i])
	}
	return out
}
