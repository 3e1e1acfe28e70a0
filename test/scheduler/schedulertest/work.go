package schedulertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openpai/paictl/pkg/scheduler/annotation"
	"github.com/openpai/paictl/pkg/scheduler/claim"
)

// Configure writes a configuration of the scheduler to its ConfigMap.
func Configure(t testing.TB, client kubernetes.Interface, namespace, yaml string) {
	t.Helper()
	maps := client.CoreV1().ConfigMaps(namespace)
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "scheduler-configuration"}, Data: map[string]string{"hivedscheduler.yaml": yaml}}
	_, err := maps.Create(t.Context(), object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = maps.Update(t.Context(), object, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Namespace creates a namespace, and waits until pods can be created there.
func Namespace(t testing.TB, client kubernetes.Interface, name string) {
	t.Helper()
	_, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	Eventually(t, time.Minute, func() error {
		_, err := client.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
}

// Gang is a gang of equal pods.
type Gang struct {
	Namespace, Name, VC string
	Priority            int
	Pods, GPUs          int
	Extra               string // more lines of the request
	CPU                 string // the CPU of each pod; "" is little
	// NoGPU creates pods that see no GPU.
	NoGPU bool
	// Claims creates pods that expect their GPUs in ResourceClaims.
	Claims bool
}

// PodName returns the name of the i-th pod of the gang.
func (g *Gang) PodName(i int) string { return fmt.Sprintf("%s-%d", g.Name, i) }

// Pod returns the i-th pod of the gang.
func (g *Gang) Pod(i int) *corev1.Pod {
	spec := fmt.Sprintf("virtualCluster: %s\npriority: %d\nleafCellNumber: %d\naffinityGroup:\n  name: %s\n  members: [{podNumber: %d, leafCellNumber: %d}]\n%s",
		g.VC, g.Priority, g.GPUs, g.Name, g.Pods, g.GPUs, g.Extra)
	cpu := g.CPU
	if cpu == "" {
		cpu = "10m"
	}
	limits := corev1.ResourceList{annotation.EnableKey: resource.MustParse("1"), corev1.ResourceCPU: resource.MustParse(cpu)}
	var env []corev1.EnvVar
	if g.NoGPU {
		env = []corev1.EnvVar{{Name: "NVIDIA_VISIBLE_DEVICES", Value: "none"}}
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: g.PodName(i), Annotations: map[string]string{annotation.SpecKey: spec}, Labels: map[string]string{"gang": g.Name}},
		Spec: corev1.PodSpec{
			SchedulerName: "pai-scheduler", RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "example.org/none:v1", Env: env, Resources: corev1.ResourceRequirements{Limits: limits}}},
		},
	}
	if g.Claims {
		claim.Expect(p, func(*corev1.Container) bool { return true })
	}
	return p
}

// Create creates the pods of the gang.
func (g *Gang) Create(ctx context.Context, client kubernetes.Interface) error {
	for i := range g.Pods {
		if _, err := client.CoreV1().Pods(g.Namespace).Create(ctx, g.Pod(i), metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// Bound returns an error unless all pods of the gang are bound.
func (g *Gang) Bound(ctx context.Context, client kubernetes.Interface) error {
	list, err := client.CoreV1().Pods(g.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "gang=" + g.Name})
	if err != nil {
		return err
	}
	bound := 0
	for i := range list.Items {
		if list.Items[i].Spec.NodeName != "" {
			bound++
		}
	}
	if bound < g.Pods {
		return fmt.Errorf("%d of %d pods of %s are bound", bound, g.Pods, g.Name)
	}
	return nil
}

// Eventually calls f until it returns no error. If that takes longer than limit, it fails the test.
func Eventually(t testing.TB, limit time.Duration, f func() error) {
	t.Helper()
	end := time.After(limit)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := f()
		if err == nil {
			return
		}
		select {
		case <-end:
			t.Fatalf("not within %s: %v", limit, err)
		case <-t.Context().Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

// ClaimedTwice returns the number of claimed GPUs. It returns an error if two claims contain the same GPU.
func ClaimedTwice(claims []resourceapi.ResourceClaim) (gpus int, err error) {
	users := map[string]string{}
	var errs []error
	for i := range claims {
		c := &claims[i]
		if c.Status.Allocation == nil {
			continue
		}
		for _, r := range c.Status.Allocation.Devices.Results {
			gpu := r.Driver + "/" + r.Pool + "/" + r.Device
			if other := users[gpu]; other != "" {
				errs = append(errs, fmt.Errorf("the claims %s and %s both have %s", other, c.Name, gpu))
			}
			users[gpu] = c.Name
		}
	}
	return len(users), errors.Join(errs...)
}

// DoubleUse checks the annotations of bound pods. It returns an error if a pod has no GPUs, or if two pods have the same GPU.
func DoubleUse(pods []corev1.Pod) error {
	users := map[string]string{}
	var errs []error
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed || p.Annotations[annotation.SpecKey] == "" {
			continue
		}
		if p.Annotations[annotation.IsolationKey] == "" && len(p.Spec.Containers[0].Env) > 0 {
			continue // on CPU cells
		}
		if p.Annotations[annotation.IsolationKey] == "" {
			errs = append(errs, fmt.Errorf("%s is bound to %s without GPUs", p.Name, p.Spec.NodeName))
			continue
		}
		for index := range strings.SplitSeq(p.Annotations[annotation.IsolationKey], ",") {
			gpu := p.Spec.NodeName + ":" + index
			if other := users[gpu]; other != "" {
				errs = append(errs, fmt.Errorf("%s and %s both have GPU %s", other, p.Name, gpu))
			}
			users[gpu] = p.Name
		}
	}
	return errors.Join(errs...)
}
