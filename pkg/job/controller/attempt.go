package controller

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openpai/paictl/pkg/job/controller/machine"
	"github.com/openpai/paictl/pkg/job/controller/rendezvous"
	"github.com/openpai/paictl/pkg/job/controller/status"
	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/runtime/peers"
)

// configMap returns the state of the attempt's ConfigMap for the package machine. If the cache may be out of date, configMap queries the API.
func (r *reconciler) configMap(ctx context.Context, f *v1.Framework, e *entry) (machine.ConfigMap, error) {
	if f.OwnsPods() {
		return machine.ConfigMap{}, nil
	}
	cached := r.cache.configMap(v1.ConfigMapName(f.Name))
	m := &e.maps
	if cached != nil && m.gone[cached.UID] {
		cached = nil
	}
	if cached != nil {
		m.note(&m.seen, cached.UID)
	}
	if m.made != "" && !m.seen[m.made] && !m.gone[m.made] {
		return machine.ConfigMap{UID: m.made, Attempt: m.madeAttempt, Fresh: true}, nil
	}
	if cached == nil && e.status != nil {
		if uid := e.status.AttemptStatus.ConfigMapUID; uid != nil && !m.seen[types.UID(*uid)] && !m.gone[types.UID(*uid)] {
			live := &metav1.PartialObjectMetadata{}
			live.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			err := r.api.Get(ctx, client.ObjectKey{Namespace: f.Namespace, Name: v1.ConfigMapName(f.Name)}, live)
			switch {
			case apierrors.IsNotFound(err):
				m.note(&m.gone, types.UID(*uid))
			case err != nil:
				return machine.ConfigMap{}, fmt.Errorf("look for the ConfigMap of %s: %w", f.Name, err)
			default:
				cached = live
			}
		}
	}
	if cached == nil {
		return machine.ConfigMap{}, nil
	}
	return machine.ConfigMap{UID: cached.UID, Attempt: attemptOf(f, cached), Deleting: cached.DeletionTimestamp != nil}, nil
}

// attemptOf returns the attempt to which a ConfigMap belongs, or -1 if the ConfigMap belongs to another Framework with the same name.
func attemptOf(f *v1.Framework, cm metav1.Object) int32 {
	owner := metav1.GetControllerOf(cm)
	n, err := strconv.ParseInt(cm.GetAnnotations()[v1.AnnotationFrameworkAttempt], 10, 32)
	if owner == nil || owner.UID != f.UID || err != nil {
		return -1
	}
	return int32(n)
}

// configMaps creates or deletes the ConfigMap of the attempt, as the step requires.
func (r *reconciler) configMaps(ctx context.Context, f *v1.Framework, e *entry, todo *machine.Result) error {
	if todo.DeleteConfigMap != "" {
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1.ConfigMapName(f.Name), Namespace: f.Namespace}}
		err := r.api.Delete(ctx, cm, client.Preconditions{UID: &todo.DeleteConfigMap}, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete ConfigMap %s: %w", cm.Name, err)
		}
		e.maps.note(&e.maps.gone, todo.DeleteConfigMap)
	}
	if !todo.CreateConfigMap {
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return r.createConfigMap(ctx, f, e) })
	group.Go(func() error { return r.prepareJob(ctx, f, e) })
	return group.Wait()
}

func (r *reconciler) createConfigMap(ctx context.Context, f *v1.Framework, e *entry) error {
	attempt := e.status.AttemptStatus.ID
	cm := &corev1.ConfigMap{ObjectMeta: owned(f, v1.ConfigMapName(f.Name))}
	cm.Labels[status.LabelPart] = partAttempt
	cm.Annotations = map[string]string{v1.AnnotationFrameworkAttempt: strconv.Itoa(int(attempt))}
	err := r.api.Create(ctx, cm)
	if apierrors.IsAlreadyExists(err) {
		// Either an earlier call made the ConfigMap and its response was lost, or the ConfigMap remains from an earlier attempt or job. In the
		// second case, the machine removes it.
		err = r.api.Get(ctx, client.ObjectKeyFromObject(cm), cm)
	}
	if err != nil {
		return fmt.Errorf("make the ConfigMap of %s: %w", f.Name, err)
	}
	e.maps.made, e.maps.madeAttempt = cm.UID, attemptOf(f, cm)
	return nil
}

func owned(f *v1.Framework, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: f.Namespace, Labels: map[string]string{v1.LabelFramework: f.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(f, v1.GroupVersion.WithKind(v1.Kind))},
	}
}

// prepareJob creates the objects that the tasks of a job need to find each other. These are a Service for DNS names and, for jobs that an earlier
// paictl submitted, the right to watch the ConfigMap with their addresses.
func (r *reconciler) prepareJob(ctx context.Context, f *v1.Framework, e *entry) error {
	if e.setUp || !f.OwnRuntime() || !machine.Many(f) {
		return nil
	}
	meta := owned(f, f.Name)
	service := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{
		ClusterIP: corev1.ClusterIPNone, PublishNotReadyAddresses: true, Selector: map[string]string{v1.LabelFramework: f.Name},
	}}
	if err := r.ensure(ctx, f, service); err != nil {
		return err
	}
	if !f.OwnsPods() {
		if err := r.prepareAccount(ctx, f, meta); err != nil {
			return err
		}
	}
	e.setUp = true
	return nil
}

// prepareAccount creates a service account for the tasks of a job. With it, the tasks can watch the ConfigMap with their addresses. Tasks of
// newer jobs read the addresses from the controller instead.
func (r *reconciler) prepareAccount(ctx context.Context, f *v1.Framework, meta metav1.ObjectMeta) error {
	// The role and the account are created before the binding. When the binding is created, the API server checks that the controller itself has
	// all permissions of the role.
	first := []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"},
			ResourceNames: []string{v1.ConfigMapName(f.Name)},
		}}},
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: f.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: f.Name, Namespace: f.Namespace}},
	}
	group, inner := errgroup.WithContext(ctx)
	for _, o := range first {
		group.Go(func() error { return r.ensure(inner, f, o) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return r.ensure(ctx, f, binding)
}

// ensure creates an object of a job unless it exists. If the existing object belongs to an earlier job with the same name, ensure replaces the
// object.
func (r *reconciler) ensure(ctx context.Context, f *v1.Framework, o client.Object) error {
	want := o.DeepCopyObject().(client.Object)
	err := r.api.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		if there, ownErr := r.own(ctx, f, o); there || ownErr != nil {
			return ownErr
		}
		err = r.api.Create(ctx, want)
	}
	_, service := o.(*corev1.Service)
	switch {
	case err == nil:
		return nil
	case service && apierrors.IsInvalid(err):
		// Kubernetes before 1.35 rejects Service names that begin with a digit. The tasks then find each other through /etc/hosts.
		r.o.Log.V(1).Info("no DNS names for a job", "framework", f.Name, "reason", err.Error())
		return nil
	}
	return fmt.Errorf("make the %T of %s: %w", o, f.Name, err)
}

// own reports whether the existing object belongs to the Framework. If the object belongs to an earlier Framework with the same name, own deletes
// it.
func (r *reconciler) own(ctx context.Context, f *v1.Framework, o client.Object) (bool, error) {
	if err := r.api.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if metav1.IsControlledBy(o, f) {
		return true, nil
	}
	uid := o.GetUID()
	if err := r.api.Delete(ctx, o, client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("remove the %T of a former job of the name %s: %w", o, f.Name, err)
	}
	return false, nil
}

// publish sends all addresses to the tasks, which either wait for them at this process or watch the attempt's ConfigMap.
func (r *reconciler) publish(ctx context.Context, f *v1.Framework, e *entry, p *peers.Peers) error {
	data, err := peers.Encode(p)
	if err != nil {
		return fmt.Errorf("publish the peers of %s: %w", f.Name, err)
	}
	if f.OwnsPods() {
		r.o.Peers.Publish(attemptName(f, e.status), data)
	} else if written, err := r.writePeers(ctx, f, e, data); err != nil || !written {
		return err
	}
	now := r.now()
	machine.Published(e.status, now)
	e.mark(&machine.Result{Changed: true}, now)
	if last := e.lastAddress.Load(); last != 0 {
		r.metrics.barrier.Observe(now.Sub(time.Unix(0, last)).Seconds())
	}
	return nil
}

func attemptName(f *v1.Framework, st *v1.FrameworkStatus) rendezvous.Attempt {
	return rendezvous.Attempt{Framework: f.Name, UID: f.UID, Number: st.AttemptStatus.ID}
}

// republish copies the addresses that another process published into the memory of this process.
func (r *reconciler) republish(f *v1.Framework, st *v1.FrameworkStatus) error {
	at := attemptName(f, st)
	if st.AttemptStatus.PeersTime == nil || !f.OwnsPods() || r.o.Peers.Has(at) {
		return nil
	}
	p := machine.Peers(f, st)
	if p == nil {
		return nil
	}
	data, err := peers.Encode(p)
	if err != nil {
		return fmt.Errorf("publish the peers of %s: %w", f.Name, err)
	}
	r.o.Peers.Publish(at, data)
	return nil
}

// writePeers writes all addresses into the attempt's ConfigMap. written is false if the ConfigMap of this attempt no longer exists.
func (r *reconciler) writePeers(ctx context.Context, f *v1.Framework, e *entry, data []byte) (written bool, err error) {
	sum := sha256.Sum256(data)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":         e.status.AttemptStatus.ConfigMapUID, // of this attempt, or a conflict
			"annotations": map[string]string{"paictl.openpai.org/peers": hex.EncodeToString(sum[:8])},
		},
		"binaryData": map[string]string{v1.PeersKey: base64.StdEncoding.EncodeToString(data)},
	})
	if err != nil {
		return false, err
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v1.ConfigMapName(f.Name), Namespace: f.Namespace}}
	err = r.api.Patch(ctx, cm, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return false, nil // the machine will see that
	}
	if err != nil {
		return false, fmt.Errorf("publish the peers of %s: %w", f.Name, err)
	}
	return true, nil
}
