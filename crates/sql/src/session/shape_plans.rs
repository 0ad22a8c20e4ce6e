//! Hot path, budget 30 instructions a known statement besides the lookup: the plan of the statement whose shape was scanned
//! last, found or made.

use std::sync::Arc;

use junctor_model::error::Result;

use crate::bind::message;
use crate::execute::Engine;
use crate::execute::{LockCallMode, StatementContext};
use crate::parse::lift::can_keep;
use crate::parse::{Parameterised, parse_with_parameters};
use crate::plan::kinds_of_shape;
use crate::plan::{KeptLiterals, Known, Plan, PlanKey};

impl StatementContext<'_, '_> {
    /// The plan of a statement whose parameters are the lifted literals of its shape. `None` when no plan lasts: the
    /// statement is then planned with its literals.
    ///
    /// # Errors
    /// Those of parsing, binding and planning.
    #[inline(always)]
    pub(super) fn plan_of_shape(&mut self, text: &[u8]) -> Result<Option<Plan>> {
        let key = Engine::plan_key(&self.engine.shape, self.session);
        match self.engine.cache.get(&key, &self.engine.gateway.catalog().dictionary) {
            Some(Known::Plan(plan)) => Ok(Some(plan)),
            Some(Known::Kept(kept)) => self.plan_of_kept(text, &kept),
            None => self.plan_shape(text),
        }
    }

    /// The plan of a statement whose shape keeps literals.
    fn plan_of_kept(&mut self, text: &[u8], kept: &KeptLiterals) -> Result<Option<Plan>> {
        if !kept.has_plans() || !can_keep(&kept.ordinals, &self.engine.shape) {
            return Ok(None);
        }
        let engine = &mut *self.engine;
        engine.work.variant.clear();
        let hash = engine.shape.append_with_kept(text, &kept.ordinals, &mut engine.work.variant);
        let shape_key = Engine::plan_key(&engine.shape, self.session);
        let key = PlanKey { hash, text: &engine.work.variant, ..shape_key };
        if let Some(Known::Plan(plan)) = engine.cache.get(&key, &engine.gateway.catalog().dictionary) {
            kept.note_use();
            return Ok(Some(plan));
        }
        kept.note_plan();
        self.plan_shape(text)
    }

    /// Plans a statement that has no plan yet.
    #[cold]
    fn plan_shape(&mut self, text: &[u8]) -> Result<Option<Plan>> {
        let (statement, kept) = match parse_with_parameters(text, &self.engine.shape) {
            Ok(Parameterised::Statement { statement, kept }) => (statement, kept),
            Ok(Parameterised::LiteralsMatter) => {
                self.keep_known(Known::Kept(Arc::default()));
                return Ok(None);
            }
            Err(error) => return Err(message::of_parse_error(&error)),
        };
        kinds_of_shape(&self.engine.shape, &mut self.engine.work.kinds);
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Described);
        let planned = self.plan(&statement, self.session.database());
        self.engine.lock_calls.get_mut().set_mode(LockCallMode::Refused);
        let Some(planned) = planned? else { return Ok(None) };
        if planned.is_volatile {
            // The plan is used once, so the statement is planned with its literals instead, which is simpler.
            return Ok(None);
        }
        self.engine.counters.plans += 1;
        let plan = planned.plan;
        if kept.is_empty() {
            self.keep_known(Known::Plan(plan.clone()));
            return Ok(Some(plan));
        }
        let engine = &mut *self.engine;
        let shape_key = Engine::plan_key(&engine.shape, self.session);
        let dictionary = &engine.gateway.catalog().dictionary;
        // The entry counts how its plans are used, so it stays if it is there.
        if engine.cache.get(&shape_key, dictionary).is_none() {
            engine.cache.put(&shape_key, Known::Kept(Arc::new(KeptLiterals::new(&kept))), dictionary);
        }
        engine.work.variant.clear();
        let hash = engine.shape.append_with_kept(text, &kept, &mut engine.work.variant);
        let key = PlanKey { hash, text: &engine.work.variant, ..shape_key };
        engine.cache.put(&key, Known::Plan(plan.clone()), dictionary);
        Ok(Some(plan))
    }

    /// Keeps what is known of the shape that was scanned last.
    fn keep_known(&mut self, known: Known) {
        let key = Engine::plan_key(&self.engine.shape, self.session);
        self.engine.cache.put(&key, known, &self.engine.gateway.catalog().dictionary);
    }
}
