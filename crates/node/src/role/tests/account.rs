//! Statements about accounts, and what follows them.

use junctor_model::access::{AccountName, ResourceLimits};
use junctor_model::error::{Error, ErrorCode};
use junctor_sql::CountedName;

use super::*;

#[test]
fn locks_and_figures_of_an_account_end_only_if_the_statement_succeeds() {
    let mut node = Node::new(ONE_THREAD, NodeConfig::default());
    node.open(1, false);
    let usage = Arc::clone(&node.shared.settings.usage);
    let name = AccountName::new("root", "localhost");
    let limits = ResourceLimits { queries_per_hour: 1, ..ResourceLimits::default() };
    usage.failed_logins().note_failure(&CountedName::Account(name.clone()), 1);
    usage.count_statement(&name, &limits, false, 1).expect("the first statement");
    let is_locked = || usage.failed_logins().block(&name, 1, -1, 1).is_some();
    for fails in [true, false] {
        assert!(is_locked());
        node.begin_query(1, "ALTER USER root@localhost ACCOUNT UNLOCK");
        let mut replies = 0;
        while let Some(mut next) = node.delivery.take_next() {
            if let Signal::Sql(SqlSignal::ChangeSchemaReply(reply)) = &mut next.signal {
                assert!(is_locked(), "the change is not over");
                reply.error = fails.then(|| Error::new(ErrorCode::OutOfResources, "full"));
                replies += 1;
            }
            node.deliver(next);
        }
        assert_eq!(replies, 1);
        assert_eq!(node.rows(1).len(), usize::from(fails));
        assert_eq!(is_locked(), fails);
        assert_eq!(usage.count_statement(&name, &limits, false, 1).is_err(), fails);
    }
}
