package support

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	v1 "github.com/openpai/paictl/pkg/job/v1"
	"github.com/openpai/paictl/pkg/kube"
)

// kind is one kind of object to collect.
type kind struct {
	api  string // api/v1, apis/apps/v1
	name string // plural, as in the API's paths
	what string
	// tableOnly includes only a table of the objects, because the content is long and not helpful, or may be secret.
	tableOnly bool
}

func clusterKinds() []kind {
	return []kind{
		{api: "api/v1", name: "nodes", what: "Machines as Kubernetes sees them: conditions, addresses, versions, images"},
		{api: "api/v1", name: "namespaces", what: "Namespaces"},
		{api: "api/v1", name: "persistentvolumes", what: "Volumes"},
		{api: "apis/storage.k8s.io/v1", name: "storageclasses", what: "Classes of volumes"},
		{api: "apis/resource.k8s.io/v1", name: "resourceslices", what: "GPUs that machines offer"},
		{api: "apis/resource.k8s.io/v1", name: "deviceclasses", what: "Classes of devices"},
		{api: "apis/scheduling.k8s.io/v1", name: "priorityclasses", what: "Priorities"},
		{api: "apis/apiextensions.k8s.io/v1", name: "customresourcedefinitions", what: "Custom resource definitions", tableOnly: true},
		{api: "apis/apiregistration.k8s.io/v1", name: "apiservices", what: "Parts of the API, and whether they answer", tableOnly: true},
		{api: "apis/admissionregistration.k8s.io/v1", name: "validatingwebhookconfigurations", what: "Webhooks that may refuse objects"},
		{api: "apis/admissionregistration.k8s.io/v1", name: "mutatingwebhookconfigurations", what: "Webhooks that may change objects"},
	}
}

func namespacedKinds() []kind {
	return []kind{
		{api: "api/v1", name: "pods", what: "Pods"},
		{api: "apis/apps/v1", name: "deployments", what: "Deployments"},
		{api: "apis/apps/v1", name: "daemonsets", what: "DaemonSets"},
		{api: "apis/apps/v1", name: "statefulsets", what: "StatefulSets"},
		{api: "apis/apps/v1", name: "replicasets", what: "ReplicaSets", tableOnly: true},
		{api: "apis/batch/v1", name: "jobs", what: "Jobs of Kubernetes"},
		{api: "apis/batch/v1", name: "cronjobs", what: "CronJobs"},
		{api: "api/v1", name: "services", what: "Services"},
		{api: "apis/discovery.k8s.io/v1", name: "endpointslices", what: "Endpoints of services"},
		{api: "api/v1", name: "events", what: "Events"},
		{api: "apis/coordination.k8s.io/v1", name: "leases", what: "Leases: leaders and holders of locks"},
		{api: "api/v1", name: "persistentvolumeclaims", what: "Claims of volumes"},
		{api: "apis/networking.k8s.io/v1", name: "networkpolicies", what: "NetworkPolicies"},
		{api: "apis/policy/v1", name: "poddisruptionbudgets", what: "PodDisruptionBudgets"},
		{api: "api/v1", name: "resourcequotas", what: "Quotas"},
		{api: "apis/resource.k8s.io/v1", name: "resourceclaims", what: "Claims of GPUs"},
		{api: "apis/frameworkcontroller.microsoft.com/v1", name: "frameworks", what: "Jobs of the platform (Frameworks)"},
		{api: "api/v1", name: "configmaps", what: "ConfigMaps, without their content", tableOnly: true},
	}
}

func (b *bundle) kubernetes(ctx context.Context) {
	for name, what := range map[string]string{"version": "Version of the API server", "readyz?verbose": "Checks of the API server", "livez?verbose": "Checks of the API server"} {
		file, _, _ := strings.Cut(name, "?")
		b.archive.add(path.Join(PartKubernetes, file+".txt"), what, func(w io.Writer) error {
			text, err := b.get(ctx, name)
			if err == nil || len(text) > 0 {
				_, werr := w.Write(append(text, '\n'))
				return cmp.Or(werr, err)
			}
			return err
		})
	}
	var questions []func()
	for _, k := range clusterKinds() {
		questions = append(questions, func() { b.kind(ctx, k, "") })
	}
	for _, ns := range b.namespaces {
		for _, k := range namespacedKinds() {
			questions = append(questions, func() { b.kind(ctx, k, ns) })
		}
		questions = append(questions, func() { b.secretNames(ctx, ns) })
	}
	inParallel(b.o.Limits.Parallel/2+1, questions)
}

func inParallel(n int, all []func()) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, n)
	for _, f := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			f()
		})
	}
	wg.Wait()
}

// get requests a path from the API server. For an error response, it returns both the body and the error.
func (b *bundle) get(ctx context.Context, url string) ([]byte, error) {
	rel, query, _ := strings.Cut(url, "?")
	r := b.o.Cluster.Client.CoreV1().RESTClient().Get().AbsPath("/"+rel).SetHeader("Accept", runtime.ContentTypeJSON)
	if query != "" {
		r = r.Param(query, "")
	}
	return r.Do(ctx).Raw()
}

// kind adds the objects of a kind, as a table and as JSON.
func (b *bundle) kind(ctx context.Context, k kind, namespace string) {
	url := "/" + k.api + "/" + k.name
	folder := path.Join(PartKubernetes, "cluster")
	if namespace != "" {
		url = "/" + k.api + "/namespaces/" + namespace + "/" + k.name
		folder = path.Join(PartKubernetes, namespace)
	}
	there := false
	b.archive.add(path.Join(folder, k.name+".txt"), k.what, func(w io.Writer) error {
		var err error
		there, err = b.table(ctx, url, w)
		if apierrors.IsNotFound(err) { // this cluster doesn't have the kind, or the namespace
			return nil
		}
		if err != nil {
			return b.o.Cluster.Explain(err)
		}
		return nil
	})
	if k.tableOnly || !there {
		return
	}
	b.archive.add(path.Join(folder, k.name+".json"), k.what+", whole", func(w io.Writer) error {
		return b.o.Cluster.Explain(b.whole(ctx, url, namespace, k.name, w))
	})
}

// asTable is the Accept header that requests the table of "kubectl get -o wide" from the API server.
const asTable = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"

func (b *bundle) table(ctx context.Context, url string, w io.Writer) (there bool, err error) {
	t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
	for next := ""; ; {
		text, err := b.page(url, next, rowsAtATime).Param("includeObject", "Metadata").SetHeader("Accept", asTable).DoRaw(ctx)
		if err != nil {
			return there, err
		}
		var page struct {
			Metadata metav1.ListMeta `json:"metadata"`
			Columns  []struct {
				Name string `json:"name"`
			} `json:"columnDefinitions"`
			Rows []struct {
				Cells []any `json:"cells"`
			} `json:"rows"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return there, fmt.Errorf("read the API's answer: %w", err)
		}
		if !there && len(page.Rows) > 0 {
			there = true
			for _, c := range page.Columns {
				fmt.Fprint(t, strings.ToUpper(c.Name), "\t")
			}
			fmt.Fprintln(t)
		}
		for _, r := range page.Rows {
			for _, c := range r.Cells {
				fmt.Fprint(t, strings.Join(strings.Fields(fmt.Sprint(c)), " "), "\t")
			}
			fmt.Fprintln(t)
		}
		if next = page.Metadata.Continue; next == "" {
			return there, t.Flush()
		}
	}
}

func (b *bundle) page(url, next string, limit int) *rest.Request {
	r := b.o.Cluster.Client.CoreV1().RESTClient().Get().AbsPath(url).SetHeader("Accept", runtime.ContentTypeJSON).Param("limit", fmt.Sprint(limit))
	if next != "" {
		r = r.Param("continue", next)
	}
	return r
}

// whole writes the objects as a JSON list. It keeps only one page of objects in memory at a time.
func (b *bundle) whole(ctx context.Context, url, namespace, name string, w io.Writer) error {
	if _, err := io.WriteString(w, "{\"kind\": \"List\", \"apiVersion\": \"v1\", \"items\": ["); err != nil {
		return err
	}
	separator := "\n"
	for next := ""; ; {
		text, err := b.page(url, next, pageSize).SetHeader("Accept", "application/json").DoRaw(ctx)
		if err != nil {
			return err
		}
		var page struct {
			Kind       string           `json:"kind"`
			APIVersion string           `json:"apiVersion"`
			Metadata   metav1.ListMeta  `json:"metadata"`
			Items      []map[string]any `json:"items"`
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return fmt.Errorf("read the API's answer: %w", err)
		}
		for _, o := range page.Items {
			o["kind"], o["apiVersion"] = strings.TrimSuffix(page.Kind, "List"), page.APIVersion
			if name == "pods" {
				b.rememberLogs(o)
			}
			scrub(o, namespace == kube.JobNamespace && !b.isNamed(o))
			if _, err := io.WriteString(w, separator); err != nil {
				return err
			}
			if err := writeJSON(w, o); err != nil {
				return err
			}
			separator = ","
		}
		if next = page.Metadata.Continue; next == "" {
			_, err := io.WriteString(w, "]}\n")
			return err
		}
	}
}

func (b *bundle) isNamed(o map[string]any) bool {
	meta, _ := o["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return slices.ContainsFunc(b.o.Jobs, func(j Job) bool {
		name := v1.ObjectName(j.User, j.Name)
		return labels[v1.LabelFramework] == name || meta["name"] == name
	})
}

// secretNames adds a list of Secrets without their values. It also adds a list of Helm's revisions, which are stored as Secrets.
func (b *bundle) secretNames(ctx context.Context, namespace string) {
	var secrets, revisions []string
	err := b.eachSecret(ctx, namespace, func(s *corev1.Secret) {
		if s.Type == typeHelm {
			revisions = append(revisions, fmt.Sprintf("%s\t%s\t%s\t%s", s.Labels["name"], s.Labels["version"], s.Labels["status"], s.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z")))
			return
		}
		secrets = append(secrets, fmt.Sprintf("%s\t%s\t%s\t%s", s.Name, s.Type, strings.Join(sortedKeys(s.Data), ","), s.CreationTimestamp.UTC().Format("2006-01-02T15:04:05Z")))
	})
	if err != nil && !apierrors.IsNotFound(err) {
		b.archive.missing(path.Join(PartKubernetes, namespace, "secrets.txt"), b.o.Cluster.Explain(err))
	}
	slices.Sort(secrets)
	slices.Sort(revisions)
	b.rows(path.Join(PartKubernetes, namespace, "secrets.txt"), "Secrets: names, types and keys, no values", "NAME\tTYPE\tKEYS\tCREATED", secrets)
	b.rows(path.Join(PartServices, "helm-revisions-"+namespace+".txt"), "Revisions of Helm releases in "+namespace, "RELEASE\tREVISION\tSTATUS\tCREATED", revisions)
}

// rows adds a table, unless it has no rows.
func (b *bundle) rows(name, what, header string, rows []string) {
	if len(rows) == 0 {
		return
	}
	b.archive.add(name, what, func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)
		fmt.Fprintln(t, header)
		for _, r := range rows {
			fmt.Fprintln(t, r)
		}
		return t.Flush()
	})
}
