package v1

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The latest requeues are kept, and each is found by the value that requested it.
func TestRequeues(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 5, time.UTC)
	text := ""
	for i := range 15 {
		var err error
		text, err = WriteRequeues(ReadRequeues(map[string]string{AnnotationRequeues: text}), Requeue{Restart: fmt.Sprint("action-", i), Action: "a", Policy: "p", Reason: "GPU 2", At: at})
		require.NoError(t, err)
	}
	all := ReadRequeues(map[string]string{AnnotationRequeues: text})
	require.Len(t, all, 10)
	assert.Nil(t, FindRequeue(all, "action-4"))
	assert.Nil(t, FindRequeue(all, ""))
	assert.Equal(t, &Requeue{Restart: "action-14", Action: "a", Policy: "p", Reason: "GPU 2", At: at}, FindRequeue(all, "action-14"))
	for _, text := range []string{"", "{", `{"a":1}`, `["x"]`} {
		assert.Empty(t, ReadRequeues(map[string]string{AnnotationRequeues: text}), text)
	}
}

// Requests of people don't push those of policies out of the annotation, nor the other way round. So each policy still knows how often it has
// requeued the job.
func TestRequestsOfPeopleKeepThoseOfPolicies(t *testing.T) {
	var all []Requeue
	count := func(policy string) (n int) {
		for _, r := range all {
			if r.Policy == policy {
				n++
			}
		}
		return n
	}
	add := func(policy string, n int) {
		for range n {
			text, err := WriteRequeues(all, Requeue{Restart: fmt.Sprint("action-", len(all)), Action: "a", Policy: policy, Reason: "GPU 2"})
			require.NoError(t, err)
			all = ReadRequeues(map[string]string{AnnotationRequeues: text})
		}
	}
	add("p", 3)
	add("", 12)
	assert.Equal(t, []int{3, 10}, []int{count("p"), count("")})
	add("p", 9)
	assert.Equal(t, []int{10, 10}, []int{count("p"), count("")})
}
