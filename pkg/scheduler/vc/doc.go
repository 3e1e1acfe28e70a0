// Package vc is what "paictl vc" does: virtual clusters in services-configuration.yaml and in the
// scheduler that runs.
// In: the text of the file with changes to it, a connection to the cluster. Out: the text with
// everything else in it as it was, what the scheduler says about its virtual clusters, and what a
// change would do to gangs.
package vc
