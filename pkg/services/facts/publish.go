package facts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"gopkg.in/yaml.v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/config"
	"github.com/openpai/paictl/pkg/config/store"
	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/layout"
)

// ConfigMap is the name of the ConfigMap with the facts, in kube.SystemNamespace. Each key is the name of a service.
const ConfigMap = "pai-releases"

// These are annotations of the ConfigMap.
const (
	annotationConfiguration = "paictl.openpai.org/configuration"
	annotationRevision      = "paictl.openpai.org/revision"
)

// These are labels of objects that paictl creates outside of releases.
const (
	LabelPartOf    = "app.kubernetes.io/part-of"
	LabelManagedBy = "app.kubernetes.io/managed-by"
	Manager        = "paictl"
)

// ErrNone means that no run has published facts.
var ErrNone = hint.Wrap(errors.New("no run of paictl has published which services run"),
	"any run publishes it: paictl service start -n NAME, with a kubeconfig, and a paictl as new as the server; or check with a kubeconfig: paictl service status --kubeconfig FILE")

// Published holds the facts about all services.
type Published struct {
	Services []Service
	// Configuration is the digest of the configuration that the services were compared with (see Digest). Configuration is "" if the digest is unknown.
	Configuration string
	// Revision is the revision number of this configuration.
	Revision int
}

// Publication holds the previous ConfigMap of a run that publishes facts.
type Publication struct {
	client kubernetes.Interface
	have   *corev1.ConfigMap // nil: it didn't exist
}

// Open begins a publication. Callers must call Open before reading the services. Otherwise a run that loses the lock could overwrite the facts of the
// next run.
func Open(ctx context.Context, client kubernetes.Interface) (*Publication, error) {
	have, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, ConfigMap, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		have = nil
	case err != nil:
		return nil, fmt.Errorf("read the published state of the services: %w", err)
	}
	return &Publication{client, have}, nil
}

// Write publishes facts. Write sends no write request if the ConfigMap already contains the facts.
func (w *Publication) Write(ctx context.Context, p *Published) error {
	api, have := w.client.CoreV1().ConfigMaps(kube.SystemNamespace), w.have
	missing := have == nil
	if missing {
		have = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: ConfigMap, Namespace: kube.SystemNamespace, Labels: map[string]string{LabelPartOf: Manager, LabelManagedBy: Manager}}}
	}
	next := have.DeepCopy()
	next.Data, next.BinaryData = map[string]string{}, nil
	for i := range p.Services {
		text, err := json.Marshal(&p.Services[i])
		if err != nil {
			return fmt.Errorf("publish the state of %s: %w", p.Services[i].Name, err)
		}
		next.Data[p.Services[i].Name] = string(text)
	}
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotationConfiguration, p.Configuration)
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotationRevision, strconv.Itoa(p.Revision))
	var err error
	switch {
	case missing:
		_, err = api.Create(ctx, next, metav1.CreateOptions{})
	case maps.Equal(have.Data, next.Data) && maps.Equal(have.Annotations, next.Annotations) && len(have.BinaryData) == 0:
	default:
		_, err = api.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("publish the state of the services: %w", err)
	}
	return nil
}

// read returns the published facts, sorted by name. spoilt lists the services with invalid facts.
func read(ctx context.Context, client kubernetes.Interface) (p *Published, spoilt []string, err error) {
	cm, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, ConfigMap, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil, ErrNone
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the published state of the services: %w", err)
	}
	p = &Published{Configuration: cm.Annotations[annotationConfiguration]}
	p.Revision, _ = strconv.Atoi(cm.Annotations[annotationRevision]) // 0 is shown as unknown
	for _, name := range slices.Sorted(maps.Keys(cm.Data)) {
		s := Service{}
		if err := json.Unmarshal([]byte(cm.Data[name]), &s); err != nil {
			spoilt = append(spoilt, name)
			continue
		}
		if s.Name = name; !s.valid() {
			spoilt = append(spoilt, name)
			continue
		}
		p.Services = append(p.Services, s)
	}
	return p, spoilt, nil
}

// Digest returns a digest of a configuration without the virtual clusters. Virtual clusters can change without a start of services, so the current
// virtual clusters are in the scheduler's ConfigMap. Digest reads no secrets. A change of secrets changes the name of an entry, and therefore the
// digest.
func Digest(p *store.Public) (string, error) {
	h := sha256.New()
	for _, name := range config.Files() {
		text := p.Files[name]
		if name == config.ServicesFile {
			var sections map[string]any
			if err := yaml.Unmarshal(text, &sections); err != nil {
				return "", fmt.Errorf("read %s: %w", name, err)
			}
			withoutVirtualClusters(sections, p.Cluster)
			var err error
			if text, err = json.Marshal(sections); err != nil {
				return "", fmt.Errorf("read %s: %w", name, err)
			}
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(text), text)
	}
	fmt.Fprintf(h, "credentials %s", p.Revision.Credentials)
	return hex.EncodeToString(h.Sum(nil)), nil
}

// withoutVirtualClusters removes the virtual clusters from the section scheduler. On a cluster without GPUs, withoutVirtualClusters keeps a marker if
// virtual clusters exist, because any virtual cluster enables the scheduler.
func withoutVirtualClusters(sections map[string]any, c *config.Cluster) {
	section, ok := sections["scheduler"].(map[string]any)
	if !ok {
		return
	}
	if _, has := section["virtualClusters"]; has && !hasGPUs(c) {
		section["virtualClusters"] = true
		return
	}
	delete(section, "virtualClusters")
	if len(section) == 0 {
		delete(sections, "scheduler")
	}
}

func hasGPUs(c *config.Cluster) bool {
	return slices.ContainsFunc(c.Layout.MachineList, func(m layout.Machine) bool {
		gpu := c.Layout.MachineSKU[m.SKU].GPU
		return gpu != nil && gpu.Count > 0
	})
}
