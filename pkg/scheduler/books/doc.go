// Package books is what the scheduler knows in a cluster, and how it decides: which pods wait for cells, which gang is next,
// where it runs.
// In: pods, nodes and the configuration as the API server has them, and the questions of the plugin in kube-scheduler. Out:
// places for pods, their claims, bindings with annotations, victims deleted, events, metrics, and an API for people.
//
// What the scheduler knows is rebuilt from the claims of pods, or from the annotations of those that expect none, whenever it comes to
// lead; nothing else is stored.
// docs/adr/0024 says why it is one program with kube-scheduler.
package books
