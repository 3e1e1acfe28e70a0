package release

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// recordMax is the maximum unpacked size of a record, in bytes. A packed record has at most 1 MiB. The unpacked chart, values and manifest usually
// have a few hundred KiB.
const recordMax = 64 << 20

// historyMax is the maximum number of stored revisions of a release.
const historyMax = 10

// record is the record of a revision in the format of Helm's secrets driver. The labels show whether the record must be decoded.
type record struct {
	namespace, name string
	revision        int
	status          helmrelease.Status
	data            []byte
	secret          string            // the name of the Secret
	labels          map[string]string // the labels of the Secret, without Helm's own
}

// history holds the records of one release, newest first.
type history []record

func newRecord(s *corev1.Secret) (record, bool) {
	revision, err := strconv.Atoi(s.Labels["version"])
	if err != nil || s.Labels["name"] == "" {
		return record{}, false // not written by Helm 3
	}
	return record{
		namespace: s.Namespace, name: s.Labels["name"], revision: revision,
		status: helmrelease.Status(s.Labels["status"]), data: s.Data["release"], secret: s.Name, labels: ownLabels(s.Labels),
	}, true
}

func readRecords(ctx context.Context, c kubernetes.Interface, namespace, selector string) ([]record, error) {
	list, err := c.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("read the releases: %w", err)
	}
	var out []record
	for i := range list.Items {
		if r, ok := newRecord(&list.Items[i]); ok {
			out = append(out, r)
		}
	}
	return out, nil
}

func readHistory(ctx context.Context, c kubernetes.Interface, namespace, name string) (history, error) {
	h, err := readRecords(ctx, c, namespace, "owner=helm,name="+name)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(h, func(a, b record) int { return b.revision - a.revision })
	return h, nil
}

// newest returns the current revision of each release, sorted by namespace and name. newest omits uninstalled releases, whose records exist after
// "helm uninstall --keep-history".
func newest(records []record) []record {
	slices.SortFunc(records, func(a, b record) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), b.revision-a.revision)
	})
	records = slices.CompactFunc(records, func(a, b record) bool { return a.namespace == b.namespace && a.name == b.name })
	return slices.DeleteFunc(records, func(r record) bool { return r.status == helmrelease.StatusUninstalled })
}

// decode decodes the record into v. v is a Helm release or a struct with a part of its fields.
func (r record) decode(v any) error {
	if err := decodeRecord(r.data, v); err != nil {
		return fmt.Errorf("read revision %d of release %s/%s: %w", r.revision, r.namespace, r.name, err)
	}
	return nil
}

// decodeRecord decodes the format of Helm's records, which is base64 of gzip of JSON. Early versions of Helm 3 didn't use gzip.
func decodeRecord(data []byte, v any) error {
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(data)))
	n, err := base64.StdEncoding.Decode(raw, data)
	if err != nil {
		return err
	}
	raw = raw[:n]
	if bytes.HasPrefix(raw, []byte{0x1f, 0x8b, 0x08}) {
		z, err := gzip.NewReader(bytes.NewReader(raw))
		if err != nil {
			return err
		}
		if raw, err = io.ReadAll(io.LimitReader(z, recordMax+1)); err != nil {
			return err
		}
		if len(raw) > recordMax {
			return fmt.Errorf("it has more than %d MiB", recordMax>>20)
		}
	}
	return json.Unmarshal(raw, v)
}

// release decodes the fields of a Release from the record. release skips the chart's files.
func (r record) release() (Release, error) {
	var v struct {
		Info struct {
			LastDeployed helmtime.Time `json:"last_deployed"`
		} `json:"info"`
		Chart struct {
			Metadata struct {
				Name    string `json:"name"`
				Version string `json:"version"`
			} `json:"metadata"`
		} `json:"chart"`
		Config   map[string]any `json:"config"`
		Manifest string         `json:"manifest"`
	}
	if err := r.decode(&v); err != nil {
		return Release{}, err
	}
	return Release{
		Name: r.name, Namespace: r.namespace, Revision: r.revision, Status: r.status.String(),
		Chart: v.Chart.Metadata.Name, Version: v.Chart.Metadata.Version,
		Updated: v.Info.LastDeployed.Time, Manifest: v.Manifest, Values: v.Config, By: r.labels[labelBy],
	}, nil
}

func (r record) full() (*helmrelease.Release, error) {
	var v helmrelease.Release
	if err := r.decode(&v); err != nil {
		return nil, err
	}
	if v.Info == nil {
		v.Info = &helmrelease.Info{}
	}
	v.Info.Status, v.Labels = r.status, r.labels // the encoded data doesn't have the current values of these
	return &v, nil
}
