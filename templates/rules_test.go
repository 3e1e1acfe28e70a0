package templates

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chart"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/openpai/paictl/pkg/kube"
)

// workload is an object that creates pods, such as a Deployment or a Job.
type workload struct {
	name, kind string
	replicas   int32
	selector   *metav1.LabelSelector
	template   corev1.PodTemplateSpec
}

// server reports whether the workload's pods run until something stops them.
func (w workload) server() bool { return w.kind != "Job" && w.kind != "CronJob" }

func (w workload) containers() []corev1.Container {
	return slices.Concat(w.template.Spec.InitContainers, w.template.Spec.Containers)
}

// as turns a rendered object into a typed one; unknown fields are errors.
func as[T any](t *testing.T, o unstructured.Unstructured) T {
	t.Helper()
	var out T
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &out, true), "%s %s", o.GetKind(), o.GetName())
	return out
}

// ofKind returns the objects of one kind, converted to their Go type.
func ofKind[T any](t *testing.T, all []unstructured.Unstructured, kind string) []T {
	t.Helper()
	var out []T
	for _, o := range all {
		if o.GetKind() == kind {
			out = append(out, as[T](t, o))
		}
	}
	return out
}

func workloads(t *testing.T, all []unstructured.Unstructured) []workload {
	t.Helper()
	var out []workload
	for _, d := range ofKind[appsv1.Deployment](t, all, "Deployment") {
		require.NotNil(t, d.Spec.Replicas, "say how many replicas %s has", d.Name)
		out = append(out, workload{d.Name, "Deployment", *d.Spec.Replicas, d.Spec.Selector, d.Spec.Template})
	}
	for _, d := range ofKind[appsv1.StatefulSet](t, all, "StatefulSet") {
		require.NotNil(t, d.Spec.Replicas, "say how many replicas %s has", d.Name)
		out = append(out, workload{d.Name, "StatefulSet", *d.Spec.Replicas, d.Spec.Selector, d.Spec.Template})
	}
	for _, d := range ofKind[appsv1.DaemonSet](t, all, "DaemonSet") {
		out = append(out, workload{d.Name, "DaemonSet", 0, d.Spec.Selector, d.Spec.Template})
	}
	for _, d := range ofKind[batchv1.Job](t, all, "Job") {
		out = append(out, workload{d.Name, "Job", 0, nil, d.Spec.Template})
	}
	for _, d := range ofKind[batchv1.CronJob](t, all, "CronJob") {
		out = append(out, workload{d.Name, "CronJob", 0, nil, d.Spec.JobTemplate.Spec.Template})
	}
	return out
}

// eachWorkload runs f as a subtest for every workload of every rendering.
func eachWorkload(t *testing.T, f func(t *testing.T, w workload)) {
	t.Helper()
	eachRendering(t, func(t *testing.T, _ *chart.Chart, all []unstructured.Unstructured) {
		for _, w := range workloads(t, all) {
			t.Run(w.name, func(t *testing.T) { f(t, w) })
		}
	})
}

func TestObjectsCarryTheCommonLabels(t *testing.T) {
	eachRendering(t, func(t *testing.T, c *chart.Chart, all []unstructured.Unstructured) {
		for _, o := range all {
			got := o.GetLabels()
			what := o.GetKind() + " " + o.GetName()
			require.Equal(t, c.Name(), got["app.kubernetes.io/name"], what)
			require.Equal(t, c.Name(), got["app.kubernetes.io/instance"], what)
			require.Equal(t, "paictl", got["app.kubernetes.io/part-of"], what)
			require.NotEmpty(t, got["app.kubernetes.io/version"], what)
			require.Equal(t, "Helm", got["app.kubernetes.io/managed-by"], what)
		}
	})
}

// elsewhere lists the namespaces, other than the platform's namespace, in which a chart may create objects.
var elsewhere = map[string][]string{
	"cluster-configuration": {kube.JobNamespace},
	"storage":               {kube.JobNamespace, "default"},     // claims, where the values say so
	"watchdog":              {"default", "kube-system"},         // roles, to read objects there
	"prometheus":            {"default", "kube-system"},         // as watchdog
	"scheduler":             {kube.JobNamespace, "kube-system"}, // roles: to annotate pods of jobs, to know clients
	"job-controller":        {kube.JobNamespace},                // a role: to run jobs
	"alert-handler":         {kube.JobNamespace},                // a role, to stop jobs
	"cluster-backup":        {"kube-system"},                    // a role, to note when a backup was made
	"rest-server":           {kube.JobNamespace, "pai-people"},  // roles: to do what people may, to keep their Secrets
}

func TestObjectsLieInTheNamespaceOfThePlatform(t *testing.T) {
	clusterScoped := []string{"Namespace", "PriorityClass", "ClusterRole", "ClusterRoleBinding", "StorageClass", "PersistentVolume", "CustomResourceDefinition",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "DeviceClass"}
	eachRendering(t, func(t *testing.T, c *chart.Chart, all []unstructured.Unstructured) {
		seen := map[string]bool{}
		for _, o := range all {
			key := o.GetKind() + " " + o.GetNamespace() + "/" + o.GetName()
			require.False(t, seen[key], "%s occurs twice", key)
			seen[key] = true
			if slices.Contains(clusterScoped, o.GetKind()) {
				require.Empty(t, o.GetNamespace(), key)
				continue
			}
			require.Contains(t, append([]string{kube.SystemNamespace}, elsewhere[c.Name()]...), o.GetNamespace(), key)
		}
	})
}

func TestSelectorsFindTheirPodsAndNothingElse(t *testing.T) {
	eachRendering(t, func(t *testing.T, c *chart.Chart, all []unstructured.Unstructured) {
		for _, w := range workloads(t, all) {
			podLabels := labels.Set(w.template.Labels)
			require.Equal(t, c.Name(), podLabels["app.kubernetes.io/name"])
			require.Equal(t, "paictl", podLabels["app.kubernetes.io/part-of"], "the pods of %s lack pai.podLabels", w.name)
			require.NotContains(t, podLabels, "helm.sh/chart", "a new version of the chart would restart %s", w.name)
			if w.selector == nil {
				continue
			}
			selector, err := metav1.LabelSelectorAsSelector(w.selector)
			require.NoError(t, err)
			require.True(t, selector.Matches(podLabels), w.name)
			require.Contains(t, w.selector.MatchLabels, "app.kubernetes.io/instance")
			for key := range w.selector.MatchLabels {
				require.NotContains(t, []string{"app.kubernetes.io/version", "helm.sh/chart", "app.kubernetes.io/managed-by"}, key, "selectors can't change later")
			}
		}
		for _, s := range ofKind[corev1.Service](t, all, "Service") {
			require.True(t, slices.ContainsFunc(workloads(t, all), func(w workload) bool {
				return labels.SelectorFromSet(s.Spec.Selector).Matches(labels.Set(w.template.Labels))
			}), "service %s finds no pods", s.Name)
			require.Contains(t, []corev1.ServiceType{"", corev1.ServiceTypeClusterIP}, s.Spec.Type, "nothing is published outside of the cluster")
		}
	})
}

var pinned = regexp.MustCompile(`^[a-z0-9.:-]+(/[a-z0-9._-]+)+:v?[0-9][A-Za-z0-9._-]*(@sha256:[0-9a-f]{64})?$`)

func TestImagesArePinned(t *testing.T) {
	eachWorkload(t, func(t *testing.T, w workload) {
		for _, c := range w.containers() {
			require.Regexp(t, pinned, c.Image, "the image of %s needs a registry, a repository and a version", c.Name)
			require.NotContains(t, c.Image, "latest")
		}
	})
}

func TestTheClustersRegistryIsUsedForEveryImage(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		manifest, err := render(t, c, variants[1].values(t, c.Name()))
		require.NoError(t, err)
		for _, w := range workloads(t, objects(t, manifest)) {
			for _, container := range w.containers() {
				require.Regexp(t, `^registry\.example:5000/(mirror/|team/pai-[a-z-]+:v9\.9\.9-test$)`, container.Image)
			}
			require.Equal(t, []corev1.LocalObjectReference{{Name: "registry-credentials"}}, w.template.Spec.ImagePullSecrets, w.name)
		}
	})
}

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func TestADigestIsUsedWhereItIsGiven(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		if c.Values["image"] == nil {
			return
		}
		v := variants[0].values(t, c.Name())
		v["image"] = map[string]any{"digest": digest}
		manifest, err := render(t, c, v)
		require.NoError(t, err)
		all := workloads(t, objects(t, manifest))
		for _, w := range all {
			require.Truef(t, slices.ContainsFunc(w.containers(), func(c corev1.Container) bool { return strings.HasSuffix(c.Image, "@"+digest) }), "%s", w.name)
		}
	})
}

func TestContainersHaveRequestsAndLimits(t *testing.T) {
	eachWorkload(t, func(t *testing.T, w workload) {
		for _, c := range w.containers() {
			for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := c.Resources.Requests[name], c.Resources.Limits[name]
				require.False(t, request.IsZero(), "%s requests no %s", c.Name, name)
				require.False(t, limit.IsZero(), "%s has no limit of %s", c.Name, name)
				require.LessOrEqual(t, request.Cmp(limit), 0)
			}
		}
	})
}

func TestServersHaveProbes(t *testing.T) {
	eachWorkload(t, func(t *testing.T, w workload) {
		if !w.server() {
			return
		}
		for _, c := range w.template.Spec.Containers {
			require.NotNil(t, c.ReadinessProbe, c.Name)
			require.NotNil(t, c.LivenessProbe, c.Name)
			for _, p := range []*corev1.Probe{c.ReadinessProbe, c.LivenessProbe, c.StartupProbe} {
				if p != nil && p.HTTPGet != nil {
					// A port number may belong to another container, because the containers share the pod's network.
					found := slices.ContainsFunc(w.template.Spec.Containers, func(other corev1.Container) bool {
						return slices.ContainsFunc(other.Ports, func(port corev1.ContainerPort) bool {
							return other.Name == c.Name && port.Name == p.HTTPGet.Port.String() || fmt.Sprint(port.ContainerPort) == p.HTTPGet.Port.String()
						})
					})
					require.True(t, found, "%s has no port %s", c.Name, p.HTTPGet.Port.String())
				}
			}
		}
	})
}

// rootAllowed lists the workloads that run as root, with the capabilities that they may have.
var rootAllowed = map[string][]corev1.Capability{
	"storage/Job":            {"CHOWN", "FOWNER", "FSETID", "DAC_OVERRIDE"}, // pai-volume changes the owner of folders
	"log-manager/DaemonSet":  {},                                            // pai-logs reads root's logs
	"agent/DaemonSet":        {},                                            // pai-agent serves the kubelet in root's folders
	"cluster-backup/CronJob": {},                                            // pai-backup reads the cluster's keys, which are root's
}

// privilegedAllowed lists the workloads that may be privileged, because other containers can't open the device file of a GPU that they weren't
// allocated.
var privilegedAllowed = []string{"agent/DaemonSet"}

func TestPodsRunWithAsFewRightsAsTheyCan(t *testing.T) {
	eachWorkload(t, func(t *testing.T, w workload) {
		spec := w.template.Spec
		name := w.template.Labels["app.kubernetes.io/name"] + "/" + w.kind
		caps, root := rootAllowed[name]
		require.NotNil(t, spec.SecurityContext)
		require.NotNil(t, spec.SecurityContext.SeccompProfile)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, spec.SecurityContext.SeccompProfile.Type)
		require.NotNil(t, spec.SecurityContext.RunAsUser)
		if !root {
			require.Positive(t, *spec.SecurityContext.RunAsUser)
			require.NotNil(t, spec.SecurityContext.RunAsNonRoot)
			require.True(t, *spec.SecurityContext.RunAsNonRoot)
		}
		require.False(t, spec.HostIPC)
		if spec.HostPID {
			require.Contains(t, privilegedAllowed, name)
		}
		for _, c := range w.containers() {
			s := c.SecurityContext
			require.NotNil(t, s, c.Name)
			require.NotNil(t, s.ReadOnlyRootFilesystem)
			require.True(t, *s.ReadOnlyRootFilesystem)
			if s.Privileged != nil && *s.Privileged {
				require.Contains(t, privilegedAllowed, name)
				continue
			}
			require.NotNil(t, s.AllowPrivilegeEscalation)
			require.False(t, *s.AllowPrivilegeEscalation)
			require.Equal(t, []corev1.Capability{"ALL"}, s.Capabilities.Drop)
			require.ElementsMatch(t, caps, s.Capabilities.Add)
			if !root && s.RunAsUser != nil {
				require.Positive(t, *s.RunAsUser)
			}
		}
	})
}

// asksTheAPI lists the services whose pods get a token because they send requests to the API server.
var asksTheAPI = []string{"watchdog", "kube-state-metrics", "prometheus", "scheduler", "job-controller", "agent", "cluster-backup", "rest-server", "alert-handler"}

func TestPodsGetATokenOnlyToAskTheAPI(t *testing.T) {
	eachWorkload(t, func(t *testing.T, w workload) {
		spec := w.template.Spec
		require.NotNil(t, spec.AutomountServiceAccountToken, "say whether the pod gets a token")
		name := w.template.Labels["app.kubernetes.io/name"]
		require.Equal(t, slices.Contains(asksTheAPI, name), *spec.AutomountServiceAccountToken)
		if *spec.AutomountServiceAccountToken {
			require.NotEmpty(t, spec.ServiceAccountName, "a pod that asks the API has an account of its own")
		}
		require.NotNil(t, spec.EnableServiceLinks, "environment variables of all services are noise")
		require.False(t, *spec.EnableServiceLinks)
		require.Contains(t, []string{"pai-service", "pai-critical"}, spec.PriorityClassName)
	})
}

// writers lists the services whose work is to change something, with the rules that allow these changes.
var writers = map[string][]string{
	"scheduler": {
		`{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["create"]}`, // its own namespace's; they have no name yet
		`{"apiGroups":["coordination.k8s.io"],"resourceNames":["pai-scheduler"],"resources":["leases"],"verbs":["get","update","patch"]}`,
		`{"apiGroups":[""],"resourceNames":["scheduler-configuration"],"resources":["configmaps"],"verbs":["get","list","watch"]}`,
		`{"apiGroups":[""],"resources":["pods"],"verbs":["patch"]}`, // pods of jobs
		`{"apiGroups":["resource.k8s.io"],"resources":["resourceclaims"],"verbs":["create"]}`,
	},
	"agent": {
		`{"apiGroups":["resource.k8s.io"],"resources":["resourceslices"],"verbs":["get","list","watch","create","update","patch","delete"]}`, // a policy restricts it to the slices of its machine
		`{"apiGroups":["resource.k8s.io"],"resources":["resourceclaims"],"verbs":["get"]}`,
		// A policy restricts the agent to one annotation and one condition of its machine.
		`{"apiGroups":[""],"resources":["nodes"],"verbs":["get","list","watch","patch"]}`,
		`{"apiGroups":[""],"resources":["nodes/status"],"verbs":["patch"]}`,
	},
	"alert-handler": {
		`{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["create"]}`,
		`{"apiGroups":["coordination.k8s.io"],"resourceNames":["pai-alert-handler"],"resources":["leases"],"verbs":["get","update","patch"]}`,
		`{"apiGroups":[""],"resourceNames":["pai-alert-handler-notices"],"resources":["configmaps"],"verbs":["get","update"]}`,  // which notices were sent
		`{"apiGroups":[""],"resourceNames":["job-audit-token","job-controller-token"],"resources":["secrets"],"verbs":["get"]}`, // the audit, and the history of jobs for weekly reports
		// Policies of the alert handler's chart restrict both patches, so that it can only stop jobs, cordon machines and request repairs of their
		// GPUs.
		`{"apiGroups":["frameworkcontroller.microsoft.com"],"resources":["frameworks"],"verbs":["get","list","watch","patch"]}`,
		`{"apiGroups":[""],"resources":["nodes"],"verbs":["get","list","watch","patch"]}`,
		`{"apiGroups":[""],"resources":["pods/eviction"],"verbs":["create"]}`,
		`{"apiGroups":["paictl.openpai.org"],"resources":["actions"],"verbs":["get","list","watch","create","patch","delete"]}`,
		`{"apiGroups":["paictl.openpai.org"],"resources":["actions/status"],"verbs":["update"]}`,
	},
	"watchdog": {
		`{"apiGroups":[""],"resourceNames":["paictl"],"resources":["configmaps"],"verbs":["get"]}`, // the time of the last backup
	},
	"cluster-backup": {
		`{"apiGroups":[""],"resourceNames":["pai-configuration"],"resources":["configmaps"],"verbs":["get"]}`,
		`{"apiGroups":[""],"resourceNames":["pai-credentials"],"resources":["secrets"],"verbs":["get"]}`,   // its own namespace's: the configuration's secrets
		`{"apiGroups":[""],"resourceNames":["paictl"],"resources":["configmaps"],"verbs":["get","patch"]}`, // which cluster it is, and the time of the last backup
	},
	"rest-server": {
		`{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["create"]}`,
		`{"apiGroups":["coordination.k8s.io"],"resourceNames":["pai-server"],"resources":["leases"],"verbs":["get","update","patch"]}`,
		// The REST server stores changes of virtual clusters in the configuration, its history, and the scheduler's part. The secrets of the
		// configuration are in a Secret that the server may not read.
		`{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","create"]}`,
		`{"apiGroups":[""],"resourceNames":["pai-configuration","scheduler-configuration"],"resources":["configmaps"],"verbs":["update"]}`,
		`{"apiGroups":[""],"resourceNames":["job-controller-token","job-audit-token"],"resources":["secrets"],"verbs":["get"]}`, // in its own namespace: the tokens for the job controller's API
		`{"apiGroups":[""],"resources":["configmaps","persistentvolumeclaims","events"],"verbs":["list"]}`,                      // its own namespace's: which ConfigMaps of services are missing
		// Rights in the namespace of users, which belongs to the REST server.
		`{"apiGroups":[""],"resources":["secrets"],"verbs":["get","list","watch","create","update","patch","delete"]}`,
		`{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","create","update","patch","delete"]}`,
		// A right of the alert handler in the namespace of users, for the addresses of users' own webhooks.
		`{"apiGroups":[""],"resourceNames":["webhooks"],"resources":["secrets"],"verbs":["get"]}`,
		// Rights in the namespace of jobs. The REST server acts there for users, and creates no pods.
		`{"apiGroups":["frameworkcontroller.microsoft.com"],"resources":["frameworks"],"verbs":["get","list","watch","create","patch","delete"]}`,
		`{"apiGroups":[""],"resources":["secrets"],"verbs":["get","create","update","delete"]}`,
		`{"apiGroups":[""],"resources":["pods","pods/log","events","configmaps","persistentvolumeclaims"],"verbs":["get","list","watch"]}`,
		`{"apiGroups":[""],"resources":["pods/exec","pods/portforward"],"verbs":["get","create"]}`,
		// Users, groups, and templates of jobs.
		`{"apiGroups":["paictl.openpai.org"],"resources":["users","groups","templates"],"verbs":["get","list","watch","create","update","patch","delete"]}`,
		`{"apiGroups":["paictl.openpai.org"],"resources":["users/status","groups/status","templates/status"],"verbs":["get","update","patch"]}`,
		// Actions that administrators request. A policy of the alert handler's chart only allows the REST server to create and cancel requests of
		// persons.
		`{"apiGroups":["paictl.openpai.org"],"resources":["actions"],"verbs":["get","list","watch","create","patch"]}`,
	},
	"job-controller": {
		`{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["create"]}`,
		`{"apiGroups":["coordination.k8s.io"],"resourceNames":["job-controller"],"resources":["leases"],"verbs":["get","update","patch"]}`,
		// Secrets in its own namespace: the job controller creates the Secrets that give access to its API and to log-manager's API.
		`{"apiGroups":[""],"resources":["secrets"],"verbs":["create"]}`,
		`{"apiGroups":[""],"resourceNames":["job-controller-token","log-manager-token","job-audit-token"],"resources":["secrets"],"verbs":["get"]}`,
		`{"apiGroups":[""],"resourceNames":["job-failure-rules"],"resources":["configmaps"],"verbs":["get","list","watch"]}`,
		`{"apiGroups":["","events.k8s.io"],"resources":["events"],"verbs":["create","patch"]}`,
		// Rights in the namespace of jobs, whose objects the job controller creates and deletes. Secrets aren't among these objects.
		`{"apiGroups":["frameworkcontroller.microsoft.com"],"resources":["frameworks"],"verbs":["get","list","watch","update","patch","delete"]}`,
		`{"apiGroups":["frameworkcontroller.microsoft.com"],"resources":["frameworks/status"],"verbs":["update","patch"]}`,
		`{"apiGroups":["frameworkcontroller.microsoft.com"],"resources":["frameworks/finalizers"],"verbs":["update"]}`,
		`{"apiGroups":[""],"resources":["pods"],"verbs":["get","list","watch","create","patch","delete"]}`,
		`{"apiGroups":[""],"resources":["configmaps","services","serviceaccounts"],"verbs":["get","list","watch","create","update","patch","delete"]}`,
		`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["get","list","watch","create","update","patch","delete"]}`,
		`{"apiGroups":["","events.k8s.io"],"resources":["events"],"verbs":["get","list","watch","create","patch"]}`,
	},
}

// writesBeyondNamespaces lists the services that change objects without a namespace. Either a policy of the chart restricts these changes, or the
// kind belongs to the service.
var writesBeyondNamespaces = []string{"agent", "scheduler", "rest-server", "alert-handler"}

// Services may not read Secrets of other services, run commands in pods, or have rights that they don't need.
func TestRolesAreNarrow(t *testing.T) {
	eachRendering(t, func(t *testing.T, c *chart.Chart, all []unstructured.Unstructured) {
		for _, o := range all {
			if o.GetKind() != "Role" && o.GetKind() != "ClusterRole" {
				continue
			}
			rules, _, err := unstructured.NestedSlice(o.Object, "rules")
			require.NoError(t, err)
			for _, r := range rules {
				exact, err := json.Marshal(r)
				require.NoError(t, err)
				if (o.GetKind() == "Role" || slices.Contains(writesBeyondNamespaces, c.Name())) && slices.Contains(writers[c.Name()], string(exact)) {
					continue
				}
				text := fmt.Sprint(r)
				for _, word := range []string{"*", "secrets", "configmaps", "pods/exec", "nodes/proxy", "escalate", "bind", "impersonate", "create", "update", "patch", "delete"} {
					require.NotContains(t, text, word, "%s %s", o.GetKind(), o.GetName())
				}
			}
		}
	})
}

// foreignRoles lists the roles that a chart's account gets although the chart doesn't create these roles.
var foreignRoles = map[string][]string{
	"scheduler": {"system:kube-scheduler", "system:volume-scheduler", "extension-apiserver-authentication-reader"},
}

func TestAccountsAreBoundToTheRolesOfTheirChart(t *testing.T) {
	eachRendering(t, func(t *testing.T, c *chart.Chart, all []unstructured.Unstructured) {
		made := slices.Clone(foreignRoles[c.Name()])
		for _, o := range all {
			if o.GetKind() == "Role" || o.GetKind() == "ClusterRole" {
				made = append(made, o.GetName())
			}
		}
		for _, o := range all {
			if o.GetKind() == "RoleBinding" || o.GetKind() == "ClusterRoleBinding" {
				name, _, err := unstructured.NestedString(o.Object, "roleRef", "name")
				require.NoError(t, err)
				require.Contains(t, made, name, "%s %s", o.GetKind(), o.GetName())
			}
		}
	})
}

// No NetworkPolicy applies to a pod that uses the network of its machine.
func TestEveryPodIsCoveredByANetworkPolicyOfItsChart(t *testing.T) {
	eachRendering(t, func(t *testing.T, _ *chart.Chart, all []unstructured.Unstructured) {
		policies := ofKind[networkingv1.NetworkPolicy](t, all, "NetworkPolicy")
		for _, w := range workloads(t, all) {
			covered := slices.ContainsFunc(policies, func(p networkingv1.NetworkPolicy) bool {
				selector, err := metav1.LabelSelectorAsSelector(&p.Spec.PodSelector)
				require.NoError(t, err)
				return selector.Matches(labels.Set(w.template.Labels)) && slices.Contains(p.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
			})
			require.Equal(t, !w.template.Spec.HostNetwork, covered, w.name)
		}
	})
}

func TestReplicasAreGuardedByADisruptionBudget(t *testing.T) {
	budgets := func(t *testing.T, all []unstructured.Unstructured, w workload) []policyv1.PodDisruptionBudget {
		return slices.DeleteFunc(ofKind[policyv1.PodDisruptionBudget](t, all, "PodDisruptionBudget"), func(b policyv1.PodDisruptionBudget) bool {
			selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
			require.NoError(t, err)
			return !selector.Matches(labels.Set(w.template.Labels))
		})
	}
	eachRendering(t, func(t *testing.T, _ *chart.Chart, all []unstructured.Unstructured) {
		for _, w := range workloads(t, all) {
			found := budgets(t, all, w)
			if w.replicas > 1 {
				require.NotEmpty(t, found, w.name)
			}
			for _, b := range found {
				require.NotNil(t, b.Spec.MaxUnavailable, "%s: minAvailable would keep the node of a single replica from being drained", b.Name)
			}
		}
	})
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		if c.Values["replicas"] == nil {
			return
		}
		v := variants[0].values(t, c.Name())
		v["replicas"] = 3
		manifest, err := render(t, c, v)
		require.NoError(t, err)
		all := objects(t, manifest)
		for _, w := range workloads(t, all) {
			require.Len(t, budgets(t, all, w), 1, w.name)
		}
	})
}

func TestPodsFollowThePlacement(t *testing.T) {
	eachChart(t, func(t *testing.T, c *chart.Chart) {
		if c.Metadata.Annotations[annotationPlacement] == "none" {
			return
		}
		manifest, err := render(t, c, variants[1].values(t, c.Name()))
		require.NoError(t, err)
		for _, w := range workloads(t, objects(t, manifest)) {
			require.Len(t, w.template.Spec.Tolerations, 1, w.name)
			if c.Metadata.Annotations[annotationPlacement] != "all" {
				require.NotNil(t, w.template.Spec.Affinity, w.name)
			}
		}
	})
}

// Data must outlive its service, and the annotations for paictl must list the claims that the charts create.
func TestClaimsAreKeptAndAnnounced(t *testing.T) {
	eachRendering(t, func(t *testing.T, c *chart.Chart, all []unstructured.Unstructured) {
		announced := c.Metadata.Annotations[annotationClaims]
		for _, o := range all {
			if k := o.GetKind(); k != "PersistentVolumeClaim" && k != "PersistentVolume" && k != "Namespace" && k != "CustomResourceDefinition" {
				continue
			}
			require.Equal(t, "keep", o.GetAnnotations()["helm.sh/resource-policy"], "%s %s", o.GetKind(), o.GetName())
			if o.GetKind() == "PersistentVolumeClaim" && c.Name() != "storage" {
				require.Contains(t, announced, "name: "+o.GetName(), "the annotation %s doesn't name the claim", annotationClaims)
			}
		}
		for _, w := range workloads(t, all) {
			for _, v := range w.template.Spec.Volumes {
				if v.PersistentVolumeClaim == nil {
					continue
				}
				require.Contains(t, announced, "name: "+v.PersistentVolumeClaim.ClaimName)
				require.Contains(t, announced, fmt.Sprintf("owner: %d", *w.template.Spec.SecurityContext.RunAsUser))
			}
		}
		for _, s := range ofKind[appsv1.StatefulSet](t, all, "StatefulSet") {
			for _, claim := range s.Spec.VolumeClaimTemplates {
				require.Contains(t, announced, fmt.Sprintf("name: %s-%s-0", claim.Name, s.Name))
			}
		}
	})
}

// Pods read their configuration when they start, so that a change must restart them.
func TestAChangeOfConfigurationRollsThePods(t *testing.T) {
	eachRendering(t, func(t *testing.T, _ *chart.Chart, all []unstructured.Unstructured) {
		for _, w := range workloads(t, all) {
			for _, v := range w.template.Spec.Volumes {
				if v.ConfigMap == nil {
					continue
				}
				_, hasChecksum := first(w.template.Annotations, "checksum/")
				reloads := slices.ContainsFunc(w.template.Spec.Containers, func(c corev1.Container) bool {
					return strings.Contains(c.Name, "reload") || slices.ContainsFunc(c.Args, func(a string) bool { return strings.Contains(a, "auto-reload") })
				})
				require.True(t, hasChecksum || reloads, "%s mounts the ConfigMap %s and has no checksum/ annotation", w.name, v.ConfigMap.Name)
			}
		}
	})
}

func first(m map[string]string, prefix string) (string, bool) {
	for k, v := range m {
		if strings.HasPrefix(k, prefix) {
			return v, true
		}
	}
	return "", false
}

// A template that uses the machine's network, processes or files must explain why.
func TestTheMachineIsUsedOnlyWithAReason(t *testing.T) {
	use := regexp.MustCompile(`^\s*(- )?(hostPath|hostNetwork|hostPID|hostIPC|hostPort):`)
	for _, name := range names(t) {
		files, err := fs.Glob(Charts(), "charts/"+name+"/templates/*")
		require.NoError(t, err)
		for _, file := range files {
			data, err := fs.ReadFile(Charts(), file)
			require.NoError(t, err)
			lines := strings.Split(string(data), "\n")
			for i, line := range lines {
				found := use.FindStringSubmatch(line)
				if found == nil {
					continue
				}
				reason := "# " + found[2] + ":"
				require.True(t, slices.ContainsFunc(lines[max(0, i-4):i], func(l string) bool { return strings.Contains(l, reason) }),
					"%s line %d: write a comment %q with the reason above it", file, i+1, reason)
			}
		}
	}
}

// paictl compares the ports that services open on machines with the ports of Kubernetes and of other services. It finds these ports in the values
// that the annotation names.
func TestPortsOnTheMachinesAreAnnounced(t *testing.T) {
	eachRendering(t, func(t *testing.T, c *chart.Chart, all []unstructured.Unstructured) {
		announced := list(c.Metadata.Annotations[annotationHostPorts])
		ports := 0
		for _, w := range workloads(t, all) {
			for _, container := range w.containers() {
				for _, p := range container.Ports {
					if w.template.Spec.HostNetwork || p.HostPort != 0 {
						ports++
					}
				}
			}
		}
		require.Len(t, announced, ports, "the annotation %s", annotationHostPorts)
	})
}

func TestTheAgentHasAllRightsOnlyWhereGPUsAreReal(t *testing.T) {
	gpu := func(simulated bool) map[string]any {
		return map[string]any{"model": "A100", "count": 8, "simulated": simulated}
	}
	for _, real := range []bool{false, true} {
		gpus := map[string]any{"n1": gpu(true), "n2": gpu(!real)}
		text, err := render(t, load(t, "agent"), map[string]any{"global": map[string]any{"gpus": gpus}})
		require.NoError(t, err)
		require.Equal(t, real, strings.Contains(text, "privileged: true"))
		require.Equal(t, real, strings.Contains(text, "mountPath: /dev}"))
	}
}
