package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	actionsv1 "github.com/openpai/paictl/pkg/alerthandler/v1"
	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/people"
)

// ActionWatch watches the Actions of the cluster, so that the server doesn't list all Actions for each page.
type ActionWatch struct {
	store *watch.Store[*actionsv1.Action]
}

// OpenActions returns an ActionWatch without Actions. Run reads the Actions.
func OpenActions(config *rest.Config, log *slog.Logger) (*ActionWatch, error) {
	objects, err := watch.Client(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the API server: %w", err)
	}
	return watchActions(watch.From(objects.Resource(actionsv1.Actions), metav1.ListOptions{}), log), nil
}

func watchActions(source watch.Source, log *slog.Logger) *ActionWatch {
	return &ActionWatch{watch.New(watch.Options[*unstructured.Unstructured, *actionsv1.Action]{Name: "actions", Source: source, Confirm: true, Log: log,
		Keep: func(u *unstructured.Unstructured) (*actionsv1.Action, error) {
			a, err := readAction(u)
			if err != nil {
				return nil, err
			}
			return brief(a), nil
		}})}
}

// brief removes the results of the parts and the managed fields from an Action to save memory.
func brief(a *actionsv1.Action) *actionsv1.Action {
	a.Status.Results, a.ManagedFields = nil, nil
	return a
}

// Run watches the Actions until ctx ends.
func (w *ActionWatch) Run(ctx context.Context) error {
	w.store.Run(ctx)
	return nil
}

// all returns the Actions by name. ok is false if the Actions may be stale, or if w is nil.
func (w *ActionWatch) all() (all map[string]*actionsv1.Action, ok bool) {
	if w == nil || !w.store.Synced() || time.Since(w.store.Confirmed()) > people.StaleAfter {
		return nil, false
	}
	return w.store.All(), true
}

// put stores an Action from the API server's response, so that the next list contains the Action.
func (w *ActionWatch) put(u *unstructured.Unstructured) {
	if w != nil && u != nil {
		w.store.Put(u)
	}
}
