package deploy

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pods are the service accounts of infra/k8s, each with a role of its own.
var pods = []string{"copy", "parse", "sweep"}

// trust is who may take the roles of a service stack, by the role's name.
func trust(t *testing.T, parameters map[string]string) map[string][]any {
	t.Helper()
	all := map[string][]any{}
	for _, r := range ofType(resolved(t, parameters, ofBucket).Service, "AWS::IAM::Role") {
		var document struct {
			Version   string
			Statement []any
		}
		name := r["RoleName"].(string)
		if err := json.Unmarshal([]byte(r["AssumeRolePolicyDocument"].(string)), &document); err != nil || document.Version != "2012-10-17" {
			t.Fatalf("the trust policy of %s cannot be read: %v\n%s", name, err, r["AssumeRolePolicyDocument"])
		}
		all[name] = document.Statement
	}
	return all
}

// podIdentity lets one service account of one cluster in.
func podIdentity(pod, cluster string) any {
	return map[string]any{"Sid": "PodIdentity", "Effect": "Allow", "Principal": map[string]any{"Service": "pods.eks.amazonaws.com"},
		"Action": []any{"sts:AssumeRole", "sts:TagSession"}, "Condition": map[string]any{
			"StringEquals": map[string]any{"aws:RequestTag/kubernetes-namespace": "ferry", "aws:RequestTag/kubernetes-service-account": pod},
			"StringLike":   map[string]any{"aws:RequestTag/eks-cluster-arn": "arn:aws:eks:us-west-2:111122223333:cluster/" + cluster}}}
}

func TestRolesAreTakenByTheirOwnServiceAccountOnly(t *testing.T) {
	service := maps.Clone(ofService)
	service["Namespace"], service["ClusterName"] = "ferry", "production"
	want := map[string][]any{}
	for _, pod := range append([]string{"oncall"}, pods...) {
		want["objectferry-"+pod] = []any{podIdentity(pod, "production")}
	}
	if diff := cmp.Diff(want, trust(t, service)); diff != "" {
		t.Errorf("EKS Pod Identity (-want +got):\n%s", diff)
	}

	const issuer, engineer = "oidc.eks.us-west-2.amazonaws.com/id/EXAMPLE", "arn:aws:iam::111122223333:role/engineer"
	service["OidcProvider"], service["OnCallPrincipals"] = issuer, engineer
	for name, statements := range want {
		pod := strings.TrimPrefix(name, "objectferry-")
		want[name] = append(statements, map[string]any{"Sid": "ServiceAccount", "Effect": "Allow",
			"Principal": map[string]any{"Federated": "arn:aws:iam::111122223333:oidc-provider/" + issuer}, "Action": "sts:AssumeRoleWithWebIdentity",
			"Condition": map[string]any{"StringEquals": map[string]any{issuer + ":aud": "sts.amazonaws.com", issuer + ":sub": "system:serviceaccount:ferry:" + pod}}})
	}
	want["objectferry-oncall"] = append(want["objectferry-oncall"], map[string]any{"Sid": "People", "Effect": "Allow",
		"Principal": map[string]any{"AWS": []any{engineer}}, "Action": "sts:AssumeRole"})
	if diff := cmp.Diff(want, trust(t, service)); diff != "" {
		t.Errorf("IAM roles for service accounts (-want +got):\n%s", diff)
	}
}

// The manifests' service accounts and roles are those of the templates.
func TestManifestsNameTheTemplatesRoles(t *testing.T) {
	names := func(file, pattern string) []string {
		text, err := os.ReadFile(filepath.Join("..", "..", "infra", "k8s", file))
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
		slices.Sort(found)
		return found
	}
	if diff := cmp.Diff(pods, names("base/common/serviceaccounts.yaml", `(?m)^  name: (\S+)$`)); diff != "" {
		t.Errorf("service accounts (-want +got):\n%s", diff)
	}
	var roles []string
	for _, pod := range pods {
		roles = append(roles, roleARN("objectferry-"+pod))
	}
	if diff := cmp.Diff(roles, names("components/identity-irsa/kustomization.yaml", `role-arn: "([^"]+)"`)); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
	all := trust(t, ofService)
	for _, pod := range pods {
		if all["objectferry-"+pod] == nil {
			t.Errorf("the template has no role for %s", pod)
		}
	}
}

// A signed source's credentials are looked for where the Secret is mounted.
func TestCredentialsLieWhereTheSecretIsMounted(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "infra", "k8s", "base", "copy", "deployment.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	mount := regexp.MustCompile(`\{name: cos, mountPath: ([^ ,]+)`).FindSubmatch(text)
	if mount == nil {
		t.Fatal("no Secret is mounted")
	}
	route, _ := resolved(t, ofService, ofBucket).Bucket.Outputs["RouteConfiguration"].(string)
	if want := "credentials_file: " + string(mount[1]) + "/"; !strings.Contains(route, want) {
		t.Errorf("no %q in\n%s", want, route)
	}
}

// KEDA may ask for the depth of the queues that it scales by, and nothing else:
// it takes no role of the service.
func TestKedaMayAskForDepthsOnly(t *testing.T) {
	service := maps.Clone(ofService)
	service["KedaRole"] = "keda-operator"
	stack := resolved(t, service, ofBucket).Service
	want := map[string][]statement{"objectferry-depth": {{Sid: "AskForDepth", Actions: []string{"sqs:GetQueueAttributes"},
		Resources: []string{queueARN("objectferry-logs"), queueARN("objectferry-sync"), queueARN("objectferry-sync_*")}}}}
	if diff := cmp.Diff(want, policies(t, "keda-operator", stack)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, r := range resolved(t, ofService, ofBucket).Service.Resources {
		if r.Type == "AWS::IAM::Policy" && slices.Contains(list(r.Properties["Roles"]), "") {
			t.Errorf("%s is of a role without a name", name)
		}
	}
}
