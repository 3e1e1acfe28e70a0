package services

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/hint"
	"github.com/openpai/paictl/pkg/kube"
	"github.com/openpai/paictl/pkg/services/catalogue"
)

// InventoryName is the name of a ConfigMap in kube.SystemNamespace. The ConfigMap lists the services that were started and not stopped. Without this
// list, paictl couldn't find running services that were removed from the configuration.
const InventoryName = "pai-services"

// annotationStopped is an annotation of the inventory. annotationStopped is a comma-separated list of the stopped services. Starting or deleting a
// service removes the service from the list.
const annotationStopped = "paictl.openpai.org/stopped"

// entry describes a service in the inventory. entry contains the data for stopping the service.
type entry struct {
	Namespace string   `json:"namespace"`
	Source    string   `json:"source"`
	Requires  []string `json:"requires,omitempty"`
}

func entryOf(s *catalogue.Service) entry {
	return entry{Namespace: s.Namespace, Source: s.Source, Requires: s.Requires}
}

// readInventory returns the entries of the inventory, by service. readInventory skips invalid entries. An administrator can stop the services of
// invalid entries with helm.
func readInventory(ctx context.Context, client kubernetes.Interface) (map[string]entry, error) {
	started, _, err := readStartedAndStopped(ctx, client)
	return started, err
}

// readStartedAndStopped returns the entries of the inventory, and the stopped services.
func readStartedAndStopped(ctx context.Context, client kubernetes.Interface) (map[string]entry, sets.Set[string], error) {
	cm, err := client.CoreV1().ConfigMaps(kube.SystemNamespace).Get(ctx, InventoryName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return map[string]entry{}, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read which services were started: %w", err)
	}
	return decodeInventory(cm), stoppedOf(cm), nil
}

func stoppedOf(cm *corev1.ConfigMap) sets.Set[string] {
	out := sets.New(strings.Split(cm.Annotations[annotationStopped], ",")...)
	return out.Delete("")
}

func decodeInventory(cm *corev1.ConfigMap) map[string]entry {
	out := map[string]entry{}
	for name, text := range cm.Data {
		var e entry
		if json.Unmarshal([]byte(text), &e) == nil && e.Namespace != "" {
			out[name] = e
		}
	}
	return out
}

// note records the started and stopped services in the inventory, and returns the entries. The caller holds the lock. note sends no write request if
// no entry has changed.
func (r *run) note(ctx context.Context, started []*catalogue.Service, stopped []string) (map[string]entry, error) {
	api := r.Client.CoreV1().ConfigMaps(kube.SystemNamespace)
	have, err := api.Get(ctx, InventoryName, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if missing {
		have, err = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: InventoryName, Namespace: kube.SystemNamespace, Labels: ownLabels("")}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which services were started: %w", err)
	}
	next := have.DeepCopy()
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	off := stoppedOf(have)
	for _, s := range started {
		text, err := json.Marshal(entryOf(s))
		if err != nil {
			return nil, fmt.Errorf("note that %s is started: %w", s.Name, err)
		}
		next.Data[s.Name] = string(text)
		off.Delete(s.Name)
	}
	for _, name := range stopped {
		delete(next.Data, name)
		off.Insert(name)
		if r.verb == verbDelete {
			off.Delete(name)
		}
	}
	if names := strings.Join(sets.List(off), ","); names != have.Annotations[annotationStopped] {
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotationStopped, names)
	}
	if maps.Equal(have.Data, next.Data) && maps.Equal(have.Annotations, next.Annotations) {
		return decodeInventory(next), nil
	}
	if missing {
		_, err = api.Create(ctx, next, metav1.CreateOptions{})
	} else {
		_, err = api.Update(ctx, next, metav1.UpdateOptions{})
	}
	return decodeInventory(next), wrap(err, "note which services are started")
}

// unmoved returns an error if a service runs in another namespace than the configured namespace. The inventory contains only one entry per service. A
// start in another namespace would overwrite the entry, and the running release would never be stopped.
func (r *run) unmoved(ctx context.Context, chosen []*catalogue.Service) error {
	started, err := readInventory(ctx, r.Client)
	if err != nil {
		return err
	}
	for _, s := range chosen {
		e, ok := started[s.Name]
		if !ok || e.Namespace == s.Namespace {
			continue
		}
		have, err := r.Releases.Get(ctx, e.Namespace, s.Name)
		if err != nil {
			return err
		}
		if have != nil {
			return hint.Errorf("stop it there first: paictl service stop -n "+s.Name+"; its data in volumes stays in that namespace",
				"%s runs in the namespace %s, but the configuration says %s", s.Name, e.Namespace, s.Namespace)
		}
	}
	return nil
}

// tellOrphans warns about started services that were disabled or removed in the configuration. A start doesn't stop these services.
func (r *run) tellOrphans(started map[string]entry) {
	var left []string
	for _, name := range slices.Sorted(maps.Keys(started)) {
		if s := r.desired.Catalogue.Get(name); s == nil || !s.Enabled {
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		r.warn("started earlier, but now disabled or no longer in the configuration: "+strings.Join(left, ", "),
			"stop them with: paictl service stop -n "+strings.Join(left, ","))
	}
}
