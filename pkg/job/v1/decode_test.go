package v1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/openpai/paictl/pkg/job/v1"
)

// hostile maps mistakes to pod templates that don't fit the Go type because of that mistake.
var hostile = map[string]string{
	"metadata is a list":         `{"metadata": [1, 2]}`,
	"spec is a text":             `{"spec": "string"}`,
	"containers is a text":       `{"spec": {"containers": "x"}}`,
	"initContainers is a number": `{"spec": {"containers": [{"name": "a"}], "initContainers": 5}}`,
	"ports is a text":            `{"spec": {"containers": [{"name": "a", "ports": "80"}]}}`,
	"a label is a number":        `{"metadata": {"labels": {"a": 1}}, "spec": {"containers": [{"name": "a"}]}}`,
	"a number is too large":      `{"spec": {"containers": [{"name": "a"}], "terminationGracePeriodSeconds": 1e300}}`,
	"a quantity is no number":    `{"spec": {"containers": [{"name": "a", "resources": {"limits": {"cpu": "lots"}}}]}}`,
	"a time is a number":         `{"metadata": {"creationTimestamp": 5}, "spec": {"containers": [{"name": "a"}]}}`,
}

func object(name, pod string) string {
	return `{"apiVersion": "frameworkcontroller.microsoft.com/v1", "kind": "Framework",
	 "metadata": {"name": "` + name + `", "namespace": "default", "uid": "u", "annotations": {"jobName": "x"}},
	 "spec": {"executionType": "Start", "retryPolicy": {}, "taskRoles": [{"name": "a", "taskNumber": 1, "task": {"pod": ` + pod + `}}]}}`
}

func TestAListIsReadWhateverOneObjectInItIs(t *testing.T) {
	for name, pod := range hostile {
		t.Run(name, func(t *testing.T) {
			list := &v1.FrameworkList{}
			text := `{"items": [` + object("bad", pod) + `,` + object("good", `{"spec": {"containers": [{"name": "a"}]}}`) + `]}`
			require.NoError(t, json.Unmarshal([]byte(text), list))
			require.Len(t, list.Items, 2)
			bad, good := list.Items[0], list.Items[1]
			assert.Equal(t, "bad", bad.Name)
			assert.Equal(t, "x", bad.Annotations["jobName"], "whose it is stays known")
			assert.Contains(t, bad.Invalid(), "can't be read: spec: ")
			assert.Empty(t, bad.Spec.TaskRoles)
			assert.Empty(t, good.Invalid())
			assert.Len(t, good.Spec.TaskRoles, 1)
		})
	}
}

func TestAStatusThatCannotBeReadIsToldAndNeverWritten(t *testing.T) {
	f := &v1.Framework{}
	require.NoError(t, json.Unmarshal([]byte(`{"metadata": {"name": "f"}, "spec": {"executionType": "Start", "taskRoles": []}, "status": {"state": 5}}`), f))
	assert.Contains(t, f.UnreadableStatus(), "status: ")
	assert.Empty(t, f.Invalid(), "the job isn't to blame")
	assert.Nil(t, f.Status)
	assert.Equal(t, v1.ExecutionStart, f.Spec.ExecutionType)
	text, err := json.Marshal(f)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "nreadable")
}

func TestTheTasksOfAllRolesAreCounted(t *testing.T) {
	f := framework("many")
	f.Spec.TaskRoles[0].TaskNumber = v1.MaxTasks
	assert.Empty(t, f.Invalid())
	f.Spec.TaskRoles = append(f.Spec.TaskRoles, v1.TaskRole{Name: "more", TaskNumber: 1})
	assert.Equal(t, "The job has 10001 tasks; the maximum is 10000.", f.Invalid())
}

func TestTheAPIServerRefusesTemplatesOfWrongTypes(t *testing.T) {
	c := open(t)
	for name, pod := range hostile {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			require.NoError(t, json.Unmarshal([]byte(object("hostile", pod)), &o.Object))
			delete(o.Object["metadata"].(map[string]any), "uid")
			err := c.Create(t.Context(), o)
			if err == nil { // the field isn't kept, or isn't checked: amounts may be numbers and texts
				f := &v1.Framework{}
				require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(o), f))
				assert.Equal(t, name == "a quantity is no number", f.Invalid() != "")
				require.NoError(t, c.Delete(t.Context(), o))
				return
			}
			assert.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
			assert.ErrorContains(t, err, "spec.taskRoles[0].task.pod")
		})
	}
}

func TestTheAPIServerCountsTheTasksOfAllRoles(t *testing.T) {
	c := open(t)
	f := framework("many")
	f.Spec.TaskRoles[0].TaskNumber = 6000
	other := *f.Spec.TaskRoles[0].DeepCopy()
	other.Name, other.TaskNumber = "other", 4001
	f.Spec.TaskRoles = append(f.Spec.TaskRoles, other)
	assert.ErrorContains(t, c.Create(t.Context(), f), "10,000 tasks at most")
	f.Spec.TaskRoles[1].TaskNumber = 4000
	assert.NoError(t, c.Create(t.Context(), f))
}

func FuzzFramework(f *testing.F) {
	for _, pod := range hostile {
		f.Add([]byte(object("f", pod)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		one := &v1.Framework{}
		if json.Unmarshal(data, one) != nil {
			return
		}
		_ = one.Invalid()
		_, err := json.Marshal(one)
		assert.NoError(t, err)
	})
}
