// Package vc implements "paictl vc", which manages virtual clusters in services-configuration.yaml and in the running
// scheduler. In: the text of the file and the changes to it, a connection to the cluster. Out: the text, otherwise unchanged,
// the scheduler's figures of its virtual clusters, and the effects of a change on gangs.
package vc
