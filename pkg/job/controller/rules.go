package controller

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/kube/watch"
	"github.com/openpai/paictl/pkg/runtime/rules"
	"github.com/openpai/paictl/pkg/runtime/spec"
)

// RulesConfigMap is the name of the ConfigMap with the administrator's failure rules, in the system namespace. If it doesn't exist, the built-in
// rules are used.
const RulesConfigMap = "job-failure-rules"

// runRules watches the administrator's rules. A valid set of rules is used, and copied into the ConfigMap that all jobs mount, so that running
// jobs use it, too. An invalid set is rejected, and the last valid set stays in use.
func (r *reconciler) runRules(ctx context.Context) error {
	api, ok := r.api.(client.WithWatch)
	if !ok {
		return fmt.Errorf("the connection can't watch")
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	only := client.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", RulesConfigMap)}
	store := watch.New(watch.Options[*corev1.ConfigMap, *corev1.ConfigMap]{
		Name: "failure rules", Source: sourceOf(api, r.o.SystemNamespace, &corev1.ConfigMapList{}, only), Log: slog.New(logr.ToSlogHandler(r.o.Log)),
		Keep: func(cm *corev1.ConfigMap) (*corev1.ConfigMap, error) { return cm, nil },
		// This is called even if the list contains no rules, because a copy of earlier rules may have to be removed.
		Changed: func([]watch.Change[*corev1.ConfigMap], string) { queue.Add(RulesConfigMap) },
	})
	go store.Run(ctx)
	go func() { <-ctx.Done(); queue.ShutDown() }()
	for {
		key, stop := queue.Get()
		if stop {
			return nil
		}
		cm, _ := store.Get(RulesConfigMap)
		if err := r.takeRules(ctx, cm); err != nil && ctx.Err() == nil {
			r.o.Log.Error(err, "spread the failure rules")
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

// takeRules starts to use a set of rules if it is valid, or the built-in rules if cm is nil.
func (r *reconciler) takeRules(ctx context.Context, cm *corev1.ConfigMap) error {
	if cm == nil {
		r.rules.use(rules.Builtin())
		copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: spec.RulesConfigMap, Namespace: r.o.Namespace}}
		return client.IgnoreNotFound(r.api.Delete(ctx, copied))
	}
	text := cm.Data[rules.Key]
	set, findings := rules.Parse("ConfigMap "+RulesConfigMap, []byte(text))
	if len(findings.Errors()) > 0 || set == nil {
		r.metrics.rulesGood.Set(0)
		r.recorder.Eventf(cm, nil, corev1.EventTypeWarning, "RulesRefused", "RulesRefused",
			"The rules are not valid, and the previous ones stay in use: %s", clip(findings.Summary()))
		return nil
	}
	r.rules.use(set)
	return r.copyRules(ctx, text)
}

// copyRules copies the rules into the ConfigMap that the jobs mount.
func (r *reconciler) copyRules(ctx context.Context, text string) error {
	have := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: r.o.Namespace, Name: spec.RulesConfigMap}
	err := r.api.Get(ctx, key, have)
	switch {
	case apierrors.IsNotFound(err):
		have = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}, Data: map[string]string{rules.Key: text}}
		err = r.api.Create(ctx, have)
	case err == nil && have.Data[rules.Key] != text:
		have.Data = map[string]string{rules.Key: text}
		err = r.api.Update(ctx, have)
	}
	if err != nil {
		return fmt.Errorf("copy the failure rules to namespace %s: %w", r.o.Namespace, err)
	}
	return nil
}
