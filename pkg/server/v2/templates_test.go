package v2

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/openpai/paictl/pkg/people/v1"
)

func TestNoItemIsFromTheYearOne(t *testing.T) {
	fields := func(tpl *v1.Template) map[string]any {
		data, err := json.Marshal(newItem(tpl))
		require.NoError(t, err)
		out := map[string]any{}
		require.NoError(t, json.Unmarshal(data, &out))
		return out
	}
	builtIn := fields(&v1.Template{Spec: v1.TemplateSpec{Name: "hello", Author: v1.AuthorBuiltIn}})
	for _, key := range []string{"createdAt", "updatedAt"} {
		if text, known := builtIn[key]; known {
			at, err := time.Parse(time.RFC3339, text.(string))
			require.NoError(t, err)
			assert.Equal(t, built(), at, key)
			assert.Greater(t, at.Year(), 2000, "%s is the date of the build", key)
		} else {
			assert.True(t, built().IsZero(), "only a build that doesn't know its date leaves %s out", key)
		}
	}
	made := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	one := fields(&v1.Template{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: made}, Spec: v1.TemplateSpec{Name: "hello", Author: "ann"}})
	assert.Equal(t, "2026-01-02T03:04:05Z", one["createdAt"])
	assert.Equal(t, "2026-01-02T03:04:05Z", one["updatedAt"])
}
